#!/usr/bin/python3
"""Writes tests/data/pytorch/<group>.json, the reference values of the tests, with PyTorch.

Regenerate (needs PyTorch 1.13 or later, as Debian's python3-torch; the CPU is enough):

    tools/pytorch_fixtures.py                 # every group
    tools/pytorch_fixtures.py operations ...  # some of them

Everything is computed in double precision from inputs that are exact in float32, so that tests
in both precisions see the same inputs; seeds are fixed. Before anything is written, the layers
made here are compared with PyTorch's own modules, outputs and gradients.

A file maps names of cases to {operation, inputs, parameters, options, outputs, upstream,
gradients}; tests/support/fixture.h reads it. `gradients` are those of sum(upstream *
outputs/output) by every floating input and every parameter. An array is {dtype, shape, values},
row-major, float64 unless it says int32 or bool; values have 12 digits, and those below 1e-14,
the rounding noise of a zero, are 0. In `optimizers` gradients and trajectory have a leading
dimension of steps. In `transformer` the arrays of inputs and logits are numbered by sentence,
and gradients are those of the mean smoothed loss per target token, before clipping. `state_dicts`
has a .safetensors file beside it for each case.
"""

import argparse
import pathlib
import sys

import torch

from fixtures import (attention, modules, operations, optimizers, self_check, state_dicts,
                      transformer)

GROUPS = {"operations": operations, "attention": attention, "modules": modules,
          "optimizers": optimizers, "transformer": transformer, "state_dicts": state_dicts}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", metavar="group",
                        help=f"one of {', '.join(GROUPS)}; all by default")
    folder = pathlib.Path(__file__).resolve().parent.parent / "tests/data/pytorch"
    parser.add_argument("--output", type=pathlib.Path, default=folder, help="the folder to fill")
    options = parser.parse_args()
    for name in options.groups:
        if name not in GROUPS:
            parser.error(f"no group {name}; there are {', '.join(GROUPS)}")
    torch.set_num_threads(1)
    self_check.run()
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.groups or GROUPS:
        path = GROUPS[name].build().write(options.output)
        print(f"{path.name}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
