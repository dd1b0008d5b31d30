#!/usr/bin/env python3
"""Finds kernels that spill registers to memory: usually slower by far than a kernel that does less
at a time or is told its block size with __launch_bounds__.

usage: check_spills.py BUILD_FOLDER   reads the reports (*.ptxas) that compiling left there; prints
                                      one line a kernel that spills, exits 1 if there are any
       check_spills.py --self-test    proves on made-up reports that it finds spills
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
SPILL = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


def spills(text):
    """(kernel's name in the object, architecture, bytes stored, bytes loaded) of those that spill."""
    name = architecture = None
    for line in text.splitlines():
        if entry := ENTRY.search(line):
            name, architecture = entry.groups()
        elif "Compiling entry function" in line:
            sys.exit(f"check_spills: cannot read: {line}")
        elif spill := SPILL.search(line):
            stores, loads = map(int, spill.groups())
            if stores or loads:
                yield name, architecture, stores, loads


def readable(name):
    try:
        return subprocess.run(["c++filt", name], capture_output=True, text=True).stdout.strip() or name
    except OSError:
        return name


def check(folder):
    """(lines to print, number of kernels seen)"""
    found, kernels = [], 0
    for report in sorted(Path(folder).rglob("*.ptxas")):
        text = report.read_text()
        kernels += len(ENTRY.findall(text))
        for name, architecture, stores, loads in spills(text):
            found.append(f"{report.name.removesuffix('.o.ptxas')}: {readable(name)} for {architecture}"
                         f" spills {stores} bytes of stores and {loads} of loads")
    return found, kernels


def self_test():
    kernel = ("ptxas info    : Compiling entry function '{}' for 'sm_90'\n"
              "ptxas info    : Function properties for {}\n"
              "    {} bytes stack frame, {} bytes spill stores, {} bytes spill loads\n"
              "ptxas info    : Used 32 registers, used 0 barriers\n")
    with tempfile.TemporaryDirectory() as folder:
        assert check(folder) == ([], 0)
        clean = "ptxas info    : 0 bytes gmem\n" + kernel.format("_Z1av", "_Z1av", 16, 0, 0)
        (Path(folder) / "clean.cu.o.ptxas").write_text(clean)
        assert check(folder) == ([], 1)
        (Path(folder) / "inner").mkdir()
        bad = clean + kernel.format("_Z12spill_kernelPf", "_Z12spill_kernelPf", 8, 12, 20)
        (Path(folder) / "inner" / "bad.cu.o.ptxas").write_text(bad)
        found, kernels = check(folder)
        assert kernels == 3 and len(found) == 1, found
        assert found[0].startswith("bad.cu: ") and "spill_kernel" in found[0], found
        assert found[0].endswith("spills 12 bytes of stores and 20 of loads"), found
    print("5 cases right")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--self-test":
        return self_test()
    found, kernels = check(sys.argv[1])
    if kernels == 0:
        sys.exit(f"check_spills: {sys.argv[1]} holds no report of nvcc; build there with GS_WITH_CUDA=ON")
    for line in found:
        print(line)
    print(f"{kernels} kernels, {len(found)} spill registers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
