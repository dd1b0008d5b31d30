"""The safetensors format: the size of a JSON header (8 bytes, little-endian), the header, and the
values of all arrays one after another. https://github.com/huggingface/safetensors
"""

import json
import math

import numpy as np

from .files import Problem, read as read_file, write as write_file

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
          "I8": "<i1", "U8": "<u1", "BOOL": "?", "BF16": "<u2"}
NAMES = {np.dtype(code): name for name, code in DTYPES.items() if name != "BF16"}


def widened(values):
    """bfloat16, as its 16 bits, in float32."""
    return (values.astype("<u4") << 16).view("<f4")


def array_of(path, name, entry, data):
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        sizes_fit = all(type(size) is int and size >= 0 for size in (*shape, begin, end))
    except (TypeError, KeyError, ValueError):
        raise Problem(f"load: {path}: the header's entry of {name} is damaged") from None
    if dtype not in DTYPES:
        raise Problem(f"load: {path}: {name} has the element type {dtype}; save it as F32")
    code = np.dtype(DTYPES[dtype])
    if not sizes_fit or end > len(data) or end - begin != math.prod(shape) * code.itemsize:
        raise Problem(f"load: {path}: {name} of shape {list(shape)} lies at bytes {begin} to {end} "
                      f"of {len(data)}; the file is damaged or truncated")
    values = np.frombuffer(data[begin:end], dtype=code).reshape(shape)
    return widened(values) if dtype == "BF16" else values


def read(path):
    """Arrays and metadata, both by name. bfloat16 comes as float32."""
    contents = read_file(path)
    size = int.from_bytes(contents[:8], "little")
    try:
        if len(contents) < 8 or 8 + size > len(contents):
            raise ValueError
        header = json.loads(contents[8:8 + size].decode())
        metadata = header.pop("__metadata__", {})
        entries = header.items()
    except (ValueError, AttributeError):
        raise Problem(f"load: {path} is not a safetensors file, or it is truncated") from None
    data = memoryview(contents)[8 + size:]
    return {name: array_of(path, name, entry, data) for name, entry in entries}, metadata


def write(path, arrays, metadata=None):
    """Same contents give the same bytes."""
    header, parts, place = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    # Wider elements first, so that all are aligned.
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
        values = np.ascontiguousarray(arrays[name])
        if values.dtype not in NAMES:
            raise Problem(f"save: {path}: {name} has the element type {values.dtype}")
        header[name] = {"dtype": NAMES[values.dtype], "shape": list(arrays[name].shape),
                        "data_offsets": [place, place + values.nbytes]}
        parts.append(values.tobytes())
        place += values.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    write_file(path, len(text).to_bytes(8, "little"), text, *parts)
