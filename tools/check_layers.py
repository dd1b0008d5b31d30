#!/usr/bin/env python3
"""Checks the order of the folders: who includes whom, which library stays in which file, that each
operation, module and model has its mirrored test, and that no file grows past 400 lines.

usage: check_layers.py [root]        prints one line a violation, exits 1 if there are any
       check_layers.py --self-test   proves on small made-up trees that it catches violations
"""

import re
import sys
import tempfile
from pathlib import Path

# core <- backend <- tensor <- ops <- nn <- {optim, io, text, train} <- models <- examples;
# datasets, which know core and text alone, stand below models.
CORE, TEXT = "framework/core", "framework/text"
TENSOR = [CORE, "framework/backend", "framework/tensor"]
NN = [*TENSOR, "framework/ops", "framework/nn"]
TRAIN = [*NN, TEXT, "framework/optim", "framework/io", "framework/train"]
MAY_INCLUDE = {
    CORE: [CORE],
    "framework/backend": TENSOR[:2],
    "framework/tensor": TENSOR,
    "framework/ops": NN[:4],
    "framework/nn": NN,
    TEXT: [CORE, TEXT],
    "framework/optim": [*NN, "framework/optim"],
    "framework/io": [*NN, TEXT, "framework/optim", "framework/io"],
    "framework/train": TRAIN,
    "datasets": [CORE, TEXT, "datasets"],
    "models": [*TRAIN, "datasets", "models"],
    "framework": [*TRAIN, "framework", "models", "datasets"],  # the umbrella header
    "examples": [*TRAIN, "framework", "models", "datasets", "examples"],
}

# Libraries that one place alone knows.
CONFINED = [
    (r"(cuda|cublas|curand|cudnn|cub/|thrust/|nccl|cooperative_groups|mma\.h)", r"(framework/backend/cuda|tests/cuda_emulation)/"),
    (r"hdf5", r"framework/io/hdf5_session\.h$"),
    (r"cxxopts", r"framework/train/options\.cpp$"),
    (r"sentencepiece", r"framework/text/sentence_piece\.cpp$"),
    (r"nlohmann/", r".*\.cpp$"),
    (r"utf8proc\.h", r"framework/text/[^/]*\.cpp$"),
    (r"(gtest|gmock)/", r"tests/"),
]

MIRRORED = {"framework/ops": "tests/ops", "framework/nn": "tests/nn", "models": "tests/models"}
LONGEST_FILE = 400  # lines

CODE = {".h", ".cpp", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".cmake"}
SOURCES = ["framework", "models", "datasets", "examples", "tests", "tools"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of(path):
    """The layer that a file belongs to: its first two folders in framework/, else its first."""
    parts = path.split("/")
    if parts[0] == "framework":
        return "/".join(parts[:2]) if len(parts) > 2 else "framework"
    return parts[0]


def include_violations(path, text):
    allowed = MAY_INCLUDE.get(layer_of(path))
    for mark, included in INCLUDE.findall(text):
        for pattern, place in CONFINED:
            if re.match(pattern, included) and not re.match(place, path):
                place = place.replace("\\", "").rstrip("$")
                yield f"{path}: includes {included}, which only {place} may"
        if mark == "<":
            continue
        if "/" not in included:
            yield f'{path}: includes "{included}" without its folder; write it from the root'
        elif allowed is not None and layer_of(included) not in allowed:
            yield f"{path}: includes {included}, against the order of the layers"
        elif re.match(r"framework/backend/(cpu|cuda)/", included) and not re.match(
            r"(framework/backend|tests)/", path
        ):
            yield f"{path}: includes {included}, which only the backend may"


def violations(root):
    root = Path(root)
    paths = [p for folder in SOURCES for p in sorted((root / folder).rglob("*")) if p.is_file()]
    for file in paths:
        path = file.relative_to(root).as_posix()
        if path.startswith("tests/data/") or file.suffix not in CODE | SCRIPTS:
            continue
        text = file.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > LONGEST_FILE:
            yield f"{path}: {lines} lines, more than {LONGEST_FILE}; split it"
        if file.suffix not in CODE:
            continue
        layer = layer_of(path)
        if path.startswith("framework/") and layer not in MAY_INCLUDE:
            yield f"{path}: {layer} is no layer; name it in tools/check_layers.py"
        yield from include_violations(path, text)
        if layer in MIRRORED and file.suffix == ".cpp":
            test = MIRRORED[layer] + path[len(layer) : -len(".cpp")] + "_test.cpp"
            if not (root / test).is_file():
                yield f"{path}: has no test {test}"


def self_test():
    clean = {
        "framework/core/a.h": "#pragma once\n",
        "framework/ops/x.cpp": '#include "framework/ops/x.h"\n#include <vector>\n',
        "framework/ops/x.h": '#include "framework/tensor/t.h"\n',
        "framework/backend/cpu/x.cpp": '#include "framework/backend/cpu/y.h"\n',
        "framework/backend/cuda/x.cu": "#include <cuda_runtime.h>\n",
        "framework/io/hdf5_session.h": "#include <hdf5.h>\n",
        "framework/text/unicode.cpp": "#include <utf8proc.h>\n",
        "framework/train/options.cpp": "#include <cxxopts.hpp>\n",
        "framework/gradstone.h": '#include "models/m.h"\n#include "framework/ops/x.h"\n',
        "models/m.h": '#include "framework/train/progress.h"\n',
        "datasets/d.cpp": '#include "framework/text/utf8.h"\n',
        "tests/ops/x_test.cpp": '#include <gtest/gtest.h>\n#include "framework/backend/cpu/y.h"\n',
        "tests/data/long.h": "\n" * 500,
        "tools/long.py": "#\n" * LONGEST_FILE,
    }
    # Each change to the clean tree, and what must be said about it.
    cases = [
        ({}, None),
        ({"framework/core/a.h": '#include "framework/backend/b.h"'}, "against the order"),
        ({"framework/tensor/a.h": '  # include "framework/ops/x.h"'}, "against the order"),
        ({"framework/ops/x.h": '#include "framework/nn/linear.h"'}, "against the order"),
        ({"framework/text/a.cpp": '#include "framework/backend/array.h"'}, "against the order"),
        ({"framework/train/a.cpp": '#include "models/m.h"'}, "against the order"),
        ({"framework/nn/a.h": '#include "framework/gradstone.h"'}, "against the order"),
        ({"datasets/d.cpp": '#include "framework/tensor/t.h"'}, "against the order"),
        ({"models/m.h": '#include "tests/support/support.h"'}, "against the order"),
        ({"models/m.h": '#include "m2.h"'}, "without its folder"),
        ({"framework/ops/x.h": '#include "framework/backend/cpu/y.h"'}, "only the backend"),
        ({"framework/backend/cpu/x.cpp": "#include <cuda_fp16.h>"}, "includes cuda_fp16.h"),
        ({"framework/backend/memory.cpp": "#include <cublasLt.h>"}, "includes cublasLt.h"),
        ({"tests/ops/x_test.cpp": "#include <cuda_runtime.h>"}, "includes cuda_runtime.h"),
        ({"tests/cuda_emulation/e.cpp": "#include <cuda_runtime.h>"}, None),
        ({"framework/backend/cuda/x.cu": '#include "tests/cuda_emulation/e.h"'}, "against the order"),
        ({"framework/io/checkpoint.cpp": "#include <hdf5.h>"}, "includes hdf5.h"),
        ({"examples/e.cpp": "#include <cxxopts.hpp>"}, "includes cxxopts.hpp"),
        ({"datasets/d.cpp": "#include <utf8proc.h>"}, "includes utf8proc.h"),
        ({"framework/text/t.cpp": "#include <sentencepiece_trainer.h>"}, "sentencepiece_trainer.h"),
        ({"models/m.h": "#include <nlohmann/json.hpp>"}, "includes nlohmann/json.hpp"),
        ({"models/m.h": "#include <gtest/gtest.h>"}, "includes gtest/gtest.h"),
        ({"framework/ops/y.cpp": ""}, "no test tests/ops/y_test.cpp"),
        ({"framework/nn/y.cpp": ""}, "no test tests/nn/y_test.cpp"),
        ({"models/y.cpp": ""}, "no test tests/models/y_test.cpp"),
        ({"framework/odd/y.h": ""}, "is no layer"),
        ({"framework/core/a.h": "\n" * (LONGEST_FILE + 1)}, "401 lines"),
        ({"tools/long.py": "#\n" * (LONGEST_FILE + 1)}, "401 lines"),
    ]
    for change, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**clean, **change}.items():
                file = Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            found = list(violations(root))
        right = not found if expected is None else len(found) == 1 and expected in found[0]
        assert right, f"{change}: expected {expected}, found {found}"
    print(f"{len(cases)} cases right")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = list(violations(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
