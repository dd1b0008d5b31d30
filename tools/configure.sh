#!/usr/bin/env bash
# usage: tools/configure.sh PRESET [cmake arguments]
# Configures a preset, with ccache where it is installed; shows cmake's words only when it fails,
# and what it leaves out for want of the CUDA Toolkit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
if ! output=$(cmake --preset "$@" "${launcher[@]}" 2>&1); then
  echo "$output" >&2
  exit 1
fi
grep '^CUDA: ' <<<"$output" || true
