#!/usr/bin/env bash
# Builds and runs the whole test suite.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'EOF'
usage: tools/test.sh [--no-setup] [--preset NAME] [--cuda] [ctest arguments]

Installs what is missing (Debian 12), builds, and runs all tests in parallel.
  --no-setup       install nothing
  --preset NAME    which build (default test):
    test           optimised, for the CPU
    debug          not optimised, for the CPU
    emulate        optimised; CUDA kernels run on the CPU (tests/cuda_emulation/README.md)
    sanitize       address and undefined-behaviour sanitizers; CUDA kernels run on the CPU where the
                   CUDA Toolkit's headers are
    race           clang's thread sanitizer, for missing barriers and races in CUDA kernels, which
                   run on the CPU; give --cuda: all else is slow there and says nothing new
  --cuda           with emulate and race: only what uses the emulated device, once in each mode of
                   the emulation that finds other mistakes

  tools/test.sh -R ops/          only the tests of the operations
  tools/test.sh --rerun-failed   only those that failed last time
EOF
}

preset="test"
setup=yes
cuda=no
while [[ $# -gt 0 ]]; do
  case $1 in
    --no-setup) setup=no && shift ;;
    --cuda) cuda=yes && shift ;;
    --preset)
      [[ $# -gt 1 ]] || { echo "test.sh: --preset: value missing" >&2 && exit 2; }
      preset=$2 && shift 2
      ;;
    --help | -h) usage && exit 0 ;;
    *) break ;;
  esac
done

if [[ $cuda == yes && $preset != emulate && $preset != race ]]; then
  echo "test.sh: --cuda: goes with --preset emulate or race, got $preset" >&2 && exit 2
fi

packages=(--tests)
if [[ $preset == race ]]; then packages+=(--race); fi
if [[ $setup == yes ]]; then tools/setup.sh "${packages[@]}"; fi
jobs=$(nproc)
folder=build/$preset

echo "== Building the tests ($preset)"
started=$SECONDS
tools/configure.sh "$preset"
target=()
if [[ $cuda == yes ]]; then
  target=(--target cuda_tests)
  set -- -R ^cuda "$@"
fi
cmake --build --preset "$preset" --parallel "$jobs" "${target[@]}"
built=$SECONDS

# A leak or a bad access ends the test that has it; absurd sizes are refused, not fatal. Libraries
# opened at run time confuse the leak check where it follows thread-local memory.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:detect_stack_use_after_return=1:strict_init_order=1:allocator_may_return_null=1:intercept_tls_get_addr=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}

# Each CUDA array in memory of exactly its size, so that accesses beyond it show.
if [[ $preset == sanitize ]]; then export GRADSTONE_CUDA_CACHE=${GRADSTONE_CUDA_CACHE:-0}; fi
# One thread: OpenBLAS is not instrumented, and its threads would seem to race.
if [[ $preset == race ]]; then
  export OMP_NUM_THREADS=1 TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:die_after_fork=0}
fi

echo "== Running the tests"
status=0
ctest --test-dir "$folder" --parallel "$jobs" --output-on-failure --no-tests=error --progress \
  --output-junit tests.xml "$@" </dev/null || status=$?
tested=$SECONDS

figure() { grep -m1 -oP "^\s+$1=\"\K[0-9]+" "$folder/tests.xml" || echo 0; }
if [[ -f $folder/tests.xml ]]; then
  run=$(figure tests) failed=$(figure failures) skipped=$(figure skipped)
  echo "== $((run - failed - skipped)) passed, $failed failed, $skipped skipped;" \
    "built in $((built - started)) s, tested in $((tested - built)) s"
fi
exit "$status"
