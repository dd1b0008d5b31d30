#!/usr/bin/env bash
# usage: tools/analyse.sh [file.cpp]...
# clang-tidy over the sources of library and benchmarks, or over the files given, with the checks of .clang-tidy;
# any finding is an error. Needs build/test, made by tools/test.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  # Vector kernels are parsed once for each processor family: minutes, for code that is mostly
  # intrinsics.
  mapfile -t files < <(git ls-files 'framework/*.cpp' 'models/*.cpp' 'datasets/*.cpp' 'tools/*.cpp' |
    xargs grep -L foreach_target)
fi
# The compiler's own options that clang does not know are no findings.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" \
  clang-tidy-14 -p build/test --quiet --extra-arg=-Wno-unknown-warning-option
echo "${#files[@]} files, no findings"
