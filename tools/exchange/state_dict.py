"""State dicts of PyTorch in files, and their values as parameters of a Transformer."""

import io
import json

import numpy as np

from . import files, names, safetensors
from .files import Problem

CONFIG_KEY = "gradstone_config"  # in the metadata of a safetensors file
SUFFIXES = (".safetensors", ".pt", ".pth")


def check_suffix(path):
    if not path.endswith(SUFFIXES):
        raise Problem(f"{path}: must end with one of {', '.join(SUFFIXES)}")


def pytorch(path):
    try:
        import torch
    except ImportError:
        raise Problem(f"{path}: needs PyTorch; install it, or use a .safetensors file") from None
    return torch


def read_pickled(path):
    torch = pytorch(path)
    try:
        found = torch.load(io.BytesIO(files.read(path)), map_location="cpu", weights_only=True)
    except Problem:
        raise
    except Exception as error:  # torch.load throws what its parts throw
        raise Problem(f"load: {path} cannot be read, {str(error).splitlines()[0]}") from None
    if not isinstance(found, dict) or not all(torch.is_tensor(v) for v in found.values()):
        keys = f"its keys are {', '.join(map(str, found))}" if isinstance(found, dict) else (
            f"it is a {type(found).__name__}")
        raise Problem(f"load: {path} is no state dict, {keys}; save model.state_dict()")
    return {name: (value.float() if value.dtype in (torch.bfloat16, torch.half) else value).numpy()
            for name, value in found.items()}


def read(path):
    """Arrays by name, and the configuration of the model, if the file holds one."""
    check_suffix(path)
    if not path.endswith(".safetensors"):
        return read_pickled(path), {}
    arrays, metadata = safetensors.read(path)
    try:
        return arrays, json.loads(metadata.get(CONFIG_KEY, "{}"))
    except ValueError:
        raise Problem(f"load: {path}: the configuration in its metadata is damaged") from None


def write(path, arrays, config):
    check_suffix(path)
    if path.endswith(".safetensors"):
        return safetensors.write(path, arrays, {CONFIG_KEY: json.dumps(config)})
    torch = pytorch(path)
    tensors = {}  # one for each array, so that tied names share theirs
    for values in arrays.values():
        tensors.setdefault(id(values), torch.from_numpy(values.copy()))
    buffer = io.BytesIO()
    torch.save({name: tensors[id(values)] for name, values in arrays.items()}, buffer)
    return files.write(path, buffer.getvalue())


def renamed(arrays, renames, ignored, path):
    """Names with other beginnings, which are whole parts between dots; "" is no part."""
    def begins(name, start):
        return name == start or name.startswith(f"{start}.")
    result = {}
    for name, values in arrays.items():
        new = name
        for old, replacement in renames:
            if begins(name, old):
                new = (replacement + name[len(old):]).strip(".")
                break
        if any(begins(name, start) for start in ignored):
            continue
        if new in result:
            raise Problem(f"load: {path}: two arrays are named {new} once they are renamed")
        result[new] = values
    return result


def listed(kind, found, noun=""):
    if not found:
        return []
    more = f", and {len(found) - 10} more" if len(found) > 10 else ""
    return [f"{len(found)} {noun}{kind} ({', '.join(found[:10])}{more})"]


def check_names(arrays, shapes, optional, path):
    """Refuses all missing, unexpected and misshapen names in one error."""
    missing = [name for name in shapes if name not in arrays and name not in optional]
    unexpected = [name for name in arrays if name not in shapes]
    misshapen = [f"{name} is {list(arrays[name].shape)}, not {list(shape)}"
                 for name, shape in shapes.items()
                 if name in arrays and arrays[name].shape != tuple(shape)]
    parts = [*listed("missing", missing), *listed("unexpected", unexpected),
             *listed("misshapen", misshapen)]
    if parts:
        raise Problem(f"load: names differ: {', '.join(parts)} in {path}")


def single_precision(name, values, path):
    if values.dtype.kind != "f":
        raise Problem(f"load: {path}: {name} holds {values.dtype}, not floating-point numbers")
    with np.errstate(over="ignore"):
        result = values.astype("<f4")
    if np.isinf(result).sum() != np.isinf(values).sum():
        raise Problem(f"load: {path}: {name} has numbers too large for float32")
    return result


def to_parameters(arrays, config, kind, path):
    """The parameters of a Transformer by their paths, without those that are tied."""
    shapes, ties = names.parameters_of(config)
    layout = names.layout_of(config, kind)

    def shape_of(paths):
        first = shapes[ties.get(paths[0], paths[0])]
        return (first[0] * len(paths), *first[1:])
    tied = {name: paths[0] for name, paths in layout.items()
            if paths[0] in ties or (name == "output.weight" and config["tie_output"])}
    check_names(arrays, {name: shape_of(paths) for name, paths in layout.items()}, tied, path)
    parameters = {}
    for name, paths in layout.items():
        if name not in tied:
            values = single_precision(name, arrays[name], path)
            parameters.update(zip(paths, np.split(values, len(paths))))
    for name, target in tied.items():
        shared = ties.get(target, target)
        if name in arrays and not np.array_equal(single_precision(name, arrays[name], path),
                                                 parameters[shared], equal_nan=True):
            raise Problem(f"load: {path}: {name} is tied to {shared}, but its values differ; untie "
                          "them in the configuration (share_embeddings, tie_output)")
    return parameters


def from_parameters(checkpoint, config, kind, path):
    """A state dict; tied names hold the same array object."""
    shapes, ties = names.parameters_of(config)
    arrays = checkpoint.parameters
    check_names(arrays, shapes, (), path)
    result = {}
    for name, paths in names.layout_of(config, kind).items():
        values = [arrays[ties.get(one, one)] for one in paths]
        result[name] = values[0] if len(values) == 1 else np.concatenate(values)
    return result
