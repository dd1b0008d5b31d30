"""Gradstone's checkpoints: an HDF5 file behind a seal of 512 bytes.

The seal is text, filled up with NUL bytes: format and version, the size of the file, and CRC-32
and Adler-32 of all that follows it. In the file stand /model/<path> (tied parameters as soft links
to the one that they share), /config/<name> as text, /tokenizer/<name> as bytes, and /optimizer and
/training, which these functions leave alone: a written checkpoint has none.
"""

import dataclasses
import zlib

import h5py
import numpy as np

from .files import Problem, read as read_file, write as write_file

FORMAT, VERSION, SEAL_BYTES = "gradstone checkpoint", 1, 512


@dataclasses.dataclass
class Checkpoint:
    parameters: dict = dataclasses.field(default_factory=dict)  # path -> array
    ties: dict = dataclasses.field(default_factory=dict)        # path -> path that it shares
    config: dict = dataclasses.field(default_factory=dict)      # name -> text
    tokenizer: dict = dataclasses.field(default_factory=dict)   # name -> bytes

    def model_config(self):
        """The sizes and switches of the Transformer, as text."""
        return {name.removeprefix("model/"): value for name, value in self.config.items()
                if name.startswith("model/")}


def seal_of(contents):
    digest = zlib.crc32(contents) << 32 | zlib.adler32(contents)
    text = f"{FORMAT} {VERSION}\nbytes {SEAL_BYTES + len(contents):020}\ndigest {digest:016x}\n"
    return text.encode().ljust(SEAL_BYTES, b"\0")


def check_seal(path):
    data = read_file(path)
    first = data[:len(FORMAT) + 1]
    if first != FORMAT.encode() + b" ":
        raise Problem(f"load: {path} is not a checkpoint of Gradstone")
    version = data[len(first):SEAL_BYTES].partition(b"\n")[0]
    if version != str(VERSION).encode():
        raise Problem(f"load: {path} has format version {version.decode(errors='replace')}, this "
                      f"program reads {VERSION}")
    if data[:SEAL_BYTES] != seal_of(memoryview(data)[SEAL_BYTES:]):
        raise Problem(f"load: {path} is damaged, its contents are not those that were saved")


def leaves(group):
    """Path and item of every data set and soft link below a group."""
    for name in group:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            yield name, link
        elif isinstance(group[name], h5py.Group):
            for path, item in leaves(group[name]):
                yield f"{name}/{path}", item
        else:
            yield name, group[name]


def read(path):
    """A checkpoint that is found whole, without optimizer and training."""
    check_seal(path)
    result = Checkpoint()
    try:
        with h5py.File(path, "r") as file:
            for name, item in leaves(file["model"]):
                if isinstance(item, h5py.SoftLink):
                    result.ties[name] = item.path.removeprefix("/model/")
                else:
                    result.parameters[name] = item[()]
            result.config = {name: item[()].decode() for name, item in leaves(file["config"])}
            result.tokenizer = {name: item[()].tobytes()
                                for name, item in leaves(file["tokenizer"])}
    except (OSError, KeyError) as error:
        raise Problem(f"load: {path} cannot be read, {error}") from None
    return result


def text_type(data):
    """UTF-8 of fixed length, with room for a NUL: HDF5 has no text of length 0."""
    return h5py.string_dtype("utf-8", len(data) + 1)


def write(path, checkpoint, producer):
    with h5py.File("checkpoint", "w", driver="core", backing_store=False) as file:
        for name, text in (("format", FORMAT), ("producer_version", producer)):
            file.attrs.create(name, text.encode(), dtype=text_type(text.encode()))
        file.attrs["format_version"] = np.int64(VERSION)
        for name in ("model", "optimizer", "training", "config", "tokenizer"):
            file.create_group(name)
        for name, values in sorted(checkpoint.parameters.items()):
            file["model"].create_dataset(name, data=values)
        for name, target in sorted(checkpoint.ties.items()):
            file["model"][name] = h5py.SoftLink(f"/model/{target}")
        for name, text in sorted(checkpoint.config.items()):
            data = text.encode()
            file["config"].create_dataset(name, data=data, dtype=text_type(data))
        for name, data in sorted(checkpoint.tokenizer.items()):
            file["tokenizer"].create_dataset(name, data=np.frombuffer(data, dtype=np.uint8))
        file.flush()
        contents = file.id.get_file_image()
    write_file(path, seal_of(contents), contents)
