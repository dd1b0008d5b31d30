"""Reads a file of example_checkpoint() with plain h5py and checks names, types and values."""

import math
import sys
import zlib

import h5py
import numpy as np

path = sys.argv[1]
with open(path, "rb") as stream:
    block, contents = stream.read(512), stream.read()
lines = block.rstrip(b"\0").decode().splitlines()
assert lines[0] == "gradstone checkpoint 1", lines
assert int(lines[1].split()[1]) == len(block) + len(contents), lines
digest = f"{zlib.crc32(contents):08x}{zlib.adler32(contents):08x}"
assert lines[2] == f"digest {digest}", (lines, digest)

with h5py.File(path, "r") as file:
    assert file.userblock_size == 512
    assert sorted(file) == ["config", "model", "optimizer", "tokenizer", "training"]
    assert file.attrs["format"] == b"gradstone checkpoint", file.attrs["format"]
    assert file.attrs["format_version"] == 1
    assert file.attrs["producer_version"].startswith(b"gradstone "), dict(file.attrs)

    model = file["model"]
    weight = np.arange(12, dtype=np.float32).reshape(3, 4) + np.float32(900.25)
    for name, dtype, values in [
        ("embedding/weight", np.float32, weight),
        ("output/weight", np.float32, weight),  # tied: read through the link
        ("encoder/layers/0/norm/weight", np.float32, np.array([-0.0, np.inf, 1e-45], np.float32)),
        ("encoder/layers/10/mask", np.bool_, [[True, False, True], [True, False, False]]),
        ("none", np.float32, np.zeros((0, 5))),
        ("scalar", np.float64, 0.1),
        ("table", np.int32, np.array([-(2**31), 2**31 - 1]).reshape(1, 1, 1, 1, 1, 1, 1, 2)),
    ]:
        assert model[name].dtype == dtype, (name, model[name].dtype)
        assert model[name].shape == np.shape(values), (name, model[name].shape)
        assert np.array_equal(model[name][()], values), (name, model[name][()])
    link = model.get("output/weight", getlink=True)
    assert isinstance(link, h5py.SoftLink) and link.path == "/model/embedding/weight", link
    half = model["half"].astype(np.float32)[()]  # bfloat16, converted by HDF5
    assert np.array_equal(half, [[1, -2.5], [0, np.inf]]), half

    assert np.array_equal(file["optimizer/embedding/weight/first_moment"][()], weight)
    training = file["training"]
    assert training["step"][()] == 900 and training["least"][()] == -(2**63)
    assert training["learning_rate"][()] == 0.1 + 0.2 and math.isnan(training["loss"][()])
    assert training["seed"][()] == b"18446744073709551615"
    assert file["config/name"][()].decode() == "Grüße, 世界\nsecond line"
    assert file["config/empty"][()] == b""
    subwords = bytes(file["tokenizer/subwords"][()])
    assert subwords == bytes(i * 7 % 256 for i in range(256 * 5)), subwords
    assert file["tokenizer/empty"].shape == (0,)
print("all values are as saved")
