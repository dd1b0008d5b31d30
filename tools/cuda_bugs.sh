#!/usr/bin/env bash
# usage: tools/cuda_bugs.sh
# Prints what finds each planted bug of tests/cuda_emulation/bugs, in each mode of the emulation and
# in each of the builds emulate, sanitize and race that is there (tools/test.sh --preset NAME).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found=no
for preset in emulate sanitize race; do
  program=build/$preset/bin/cuda_bugs
  [[ -x $program ]] || continue
  found=yes
  "$program" --table
  echo
done
[[ $found == yes ]] || { echo "cuda_bugs.sh: no build is there; run tools/test.sh --preset emulate" >&2 && exit 1; }
