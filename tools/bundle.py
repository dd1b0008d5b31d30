#!/usr/bin/env python3
"""Packs a build of the preset portable into one archive that runs on a machine with glibc alone, and
cuBLAS and a driver where it has the CUDA backend: gradstone/ with the repository's files, bin/ with
the programs and lib/ with every library they need.

fmt, SentencePiece and Highway have no static libraries in Debian, so the libraries travel along.

usage: tools/bundle.py build/portable gradstone.tar.xz
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Of glibc, and those that come with the driver and the toolkit.
THERE = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so\.\d+"
                   r"|libcublas(Lt)?\.so\.\d+|libcuda\.so\.1|linux-vdso\.so\.1")
OPENED = ["libopenblas.so.0"]  # at run time, by the name alone
LARGEST = 64  # MiB


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"bundle: {' '.join(map(str, command))} failed: {done.stderr.strip()[-1000:]}")
    return done.stdout


def libraries(file):
    """{name: path, or None where it is not found} of all that the file needs, directly or not."""
    lines = [line.split() for line in run("ldd", file).splitlines()]
    return {words[0]: None if "not found" in " ".join(words) else words[2]
            for words in lines if len(words) > 2 and words[1] == "=>"}


def find_opened(name):
    for line in run("/sbin/ldconfig", "-p").splitlines():
        if line.split()[:1] == [name] and "x86-64" in line:
            return Path(line.split()[-1])
    sys.exit(f"bundle: {name} is not installed; run tools/setup.sh")


def needed(file):
    return re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", file))


def youngest_glibc(files):
    versions = {tuple(map(int, v.split("."))) for file in files
                for v in re.findall(r"GLIBC_(\d+\.\d+(?:\.\d+)?)", run("objdump", "-T", file))}
    return ".".join(map(str, max(versions)))


def copy_files(build, folder):
    """The repository's files, the programs, and what these need."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    (folder / "bin").mkdir()
    (folder / "lib").mkdir()
    programs = [p for p in sorted((build / "bin").iterdir()) if p.is_file() and os.access(p, os.X_OK)]
    if not any(p.name == "gradstone_tests" for p in programs):
        sys.exit(f"bundle: {build}/bin has no gradstone_tests; build the preset portable there")
    opened = [find_opened(name) for name in OPENED]
    for name, file in zip(OPENED, opened):
        shutil.copy(file.resolve(), folder / "lib" / name)
    for file in [*programs, *opened]:
        for name, path in libraries(file).items():
            if THERE.fullmatch(name):
                continue
            if path is None:
                sys.exit(f"bundle: {file} needs {name}, which is not installed")
            if not (folder / "lib" / name).exists():
                shutil.copy(Path(path).resolve(), folder / "lib" / name)
    for program in programs:
        run("strip", "-o", folder / "bin" / program.name, program)


def check(folder):
    """That nothing is taken from this machine but what the other one has; says what is needed."""
    programs, shared = (sorted((folder / name).iterdir()) for name in ("bin", "lib"))
    for file in programs:
        for name, path in libraries(file).items():
            if not THERE.fullmatch(name) and (path is None or Path(path).parent.resolve() != (folder / "lib").resolve()):
                sys.exit(f"bundle: {file.name} would take {name} from {path}, not from lib/")
    inside = {file.name for file in shared}
    outside = {name for file in [*programs, *shared] for name in needed(file)} - inside
    strangers = [name for name in outside if not THERE.fullmatch(name)]
    if strangers:
        sys.exit(f"bundle: lib/ lacks {', '.join(sorted(strangers))}")
    size = sum(file.stat().st_size for file in [*programs, *shared]) >> 20
    others = [file for file in shared if not file.name.startswith(("libstdc++.", "libgcc_s."))]
    print(f"{len(programs)} programs, {len(shared)} libraries, {size} MiB unpacked; needs "
          f"{', '.join(sorted(outside))}; glibc {youngest_glibc([*programs, *shared])}, or "
          f"{youngest_glibc([*programs, *others])} with the libstdc++ that is there")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("archive", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "gradstone"
        folder.mkdir()
        copy_files(arguments.build, folder)
        check(folder)
        arguments.archive.parent.mkdir(parents=True, exist_ok=True)
        run("tar", "-C", work, "-c", "-I", "xz -T0 --x86 --lzma2=preset=6,dict=64MiB", "-f", arguments.archive.resolve(), "gradstone")
    size = arguments.archive.stat().st_size / 2**20
    print(f"{arguments.archive}: {size:.1f} MiB")
    if size > LARGEST:
        sys.exit(f"bundle: more than {LARGEST} MiB")


if __name__ == "__main__":
    main()
