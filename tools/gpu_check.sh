#!/usr/bin/env bash
# Checks and measures everything on a machine with a CUDA device, in one call.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'EOF'
usage: tools/gpu_check.sh [--small] [PART...]
       tools/gpu_check.sh --prepare ARCHIVE.tar.xz

Without --prepare, on the machine with the device: runs the parts, each with a time limit of its
own, and those that remain whatever fails; a table comes last. In all at most 8 minutes.
  machine     what is there
  tests       the whole suite
  rates       kernels beside the limits of the device
  training    training steps of three models
  pytorch     the same steps in PyTorch, where python3 has it
  memcheck    compute-sanitizer over the tests of kernels, where it is installed
  racecheck   the same for races in shared memory
  --small     tiny sizes, to try this script itself

--prepare, on the machine that builds: builds the preset portable and packs all that is needed; the
programs in it need no more than a driver and cuBLAS. Without them, or where they do not run, the
first part builds here.

Logs go to the folder OUT (default: build/gpu_check); BIN names other programs than those of bin/
beside tools/; SECONDS_IN_ALL (default 470) is the limit of all parts together.
EOF
}

prepare() {
  cd "$root" || exit 1
  if [[ -n $(git status --porcelain --untracked-files=no) ]]; then
    echo "gpu_check.sh: --prepare: the archive holds committed files; commit your changes first" >&2
    exit 1
  fi
  tools/configure.sh portable && cmake --build --preset portable --parallel "$(nproc)" &&
    tools/bundle.py build/portable "$1" &&
    echo "there: tar -xf $(basename "$1") && OUT=\$PWD/out gradstone/tools/gpu_check.sh"
}

small=no
parts=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --prepare)
      [[ $# -eq 2 ]] || { echo "gpu_check.sh: --prepare: needs the archive's name" >&2 && exit 2; }
      prepare "$2"
      exit
      ;;
    --small) small=yes && shift ;;
    --help | -h) usage && exit 0 ;;
    machine | tests | rates | training | pytorch | memcheck | racecheck) parts+=("$1") && shift ;;
    *) echo "gpu_check.sh: $1: no such part or option; see --help" >&2 && exit 2 ;;
  esac
done
[[ ${#parts[@]} -gt 0 ]] || parts=(machine tests rates training pytorch memcheck racecheck)

out=${OUT:-$root/build/gpu_check}
mkdir -p "$out" && rm -f "$out"/*.jsonl "$out"/*.log || exit 1
bin=${BIN:-$root/bin}
budget=${SECONDS_IN_ALL:-470}
jobs=$(nproc)
python=$(command -v python3 || true)
failed=()

fail() {
  echo "   $1 FAILED: $2"
  failed+=("$1")
}

# The seconds that a part may take: its own, or what is left.
limit() {
  local left=$((budget - SECONDS))
  [[ $left -gt 0 ]] || left=0
  echo $(($1 < left ? $1 : left))
}

# shellcheck disable=SC2094  # the log is only written
# attempt NAME SECONDS COMMAND...: its output goes to OUT/NAME.log, its JSON lines to OUT/NAME.jsonl.
attempt() {
  local name=$1 most status
  most=$(limit "$2")
  shift 2
  if [[ $most -lt 3 ]]; then
    fail "$name" "no time is left" && return 1
  fi
  timeout -k 5 "$most" "$@" > >(tee -a "$out/$name.log" | grep --line-buffered '^{' >>"$out/$name.jsonl") \
    2>>"$out/$name.log"
  status=$?
  if [[ $status -eq 124 || $status -eq 137 ]]; then
    fail "$name" "not done after $most s: $*"
  elif [[ $status -ne 0 ]]; then
    fail "$name" "ended with $status: $*"
    tail -n 1 "$out/$name.log" | cut -c 1-300 | sed 's/^/      /'
  fi
  return "$status"
}

# cuBLAS lies in a toolkit or in a Python package; programs of the archive know neither.
find_cublas() {
  local file
  if ldconfig -p 2>/dev/null | grep -q 'libcublasLt\.so\.13'; then return; fi
  file=$(timeout 30 find /usr/local /usr/lib /opt /root /home -name 'libcublasLt.so.13' 2>/dev/null | head -n 1)
  if [[ -z $file ]]; then
    fail machine "libcublasLt.so.13 is nowhere; install the CUDA Toolkit 13's cuBLAS"
    return
  fi
  LD_LIBRARY_PATH=$(dirname "$file")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
}

# The carried programs, or else what can be built here.
find_programs() {
  if [[ -x $bin/gradstone_tests ]]; then
    if "$bin/gradstone_tests" --gtest_list_tests >"$out/programs.log" 2>&1; then return; fi
    echo "   $bin/gradstone_tests does not run: $(tail -n 1 "$out/programs.log")"
  fi
  echo "== Building here"
  bin=$root/build/portable/bin
  (cd "$root" && attempt build 300 bash -c 'cmake --preset portable && cmake --build --preset portable --parallel')
  if [[ ! -x $bin/gradstone_tests ]]; then
    fail build "no programs, so nothing of Gradstone runs"
    tail -n 5 "$out/build.log" | cut -c 1-300
  fi
}

part_machine() {
  {
    nvidia-smi 2>&1 || echo "no nvidia-smi"
    nvcc --version 2>&1 || echo "no nvcc"
    lscpu 2>/dev/null | grep -E 'Model name|^CPU\(s\)'
    "${python:-python3}" -c 'import torch; print("torch", torch.__version__, torch.cuda.is_available())' 2>&1 | tail -n 1
    command -v compute-sanitizer || echo "no compute-sanitizer"
  } >"$out/machine.log" 2>&1
  grep -hE 'NVIDIA|release|Model name|torch|sanitizer|^no ' "$out/machine.log" | cut -c 1-110 | sed 's/^/   /'
}

part_tests() {
  attempt tests 150 "$root/tools/run_suites.py" "$bin/gradstone_tests" --log "$out/suites.log" \
    --jobs "$jobs" --deadline 140
  grep -v '^{' "$out/tests.log" | head -n 40 | cut -c 1-160 | sed 's/^/   /'
}

part_rates() {
  local group sizes=()
  if [[ $small == yes ]]; then sizes=(--tokens 48 --widths 32 --vocabulary 64 --seconds 0); fi
  for group in products attention losses elements rows embeddings optimizers; do
    attempt rates 40 "$bin/device_rates" --device "$device" --group "$group" "${sizes[@]}"
  done
}

part_training() {
  local model precision tokens models=(tiny base big) steps=20 warm_up=5
  if [[ $small == yes ]]; then models=(tiny) steps=1 warm_up=1; fi
  for model in "${models[@]}"; do
    tokens=25000
    if [[ $model == tiny ]]; then tokens=4096; fi
    if [[ $small == yes ]]; then tokens=32; fi
    for precision in float32 tf32; do
      attempt training 40 "$bin/training_step" --device "$device" --model "$model" --precision "$precision" \
        --tokens "$tokens" --steps "$steps" --warm-up "$warm_up"
    done
  done
}

part_pytorch() {
  local script=$root/tools/benchmark/pytorch_device_training.py mode sizes=()
  if ! "${python:-python3}" -c 'import torch' 2>/dev/null; then
    fail pytorch "python3 has no torch" && return
  fi
  if [[ $small == yes ]]; then
    sizes=(--models tiny --tiny-tokens 32 --steps 1 --warm-up 1 --device cpu)
    attempt pytorch 120 "$python" "$script" --modes eager "${sizes[@]}"
    return
  fi
  attempt pytorch 60 "$python" "$script" --modes eager
  for mode in graph compile; do
    attempt pytorch 100 "$python" "$script" --modes "$mode" --precisions bfloat16 tf32
  done
}

# Without the cache each block has its exact size, and accesses beyond it are seen.
sanitize() {
  local tool=$1
  if ! command -v compute-sanitizer >/dev/null; then
    fail "$tool" "no compute-sanitizer is installed" && return
  fi
  GRADSTONE_CUDA_CACHE=0 attempt "$tool" "$2" "$root/tools/run_suites.py" "$bin/gradstone_tests" \
    --log "$out/$tool.suites.log" --part "$tool" --jobs "$jobs" --deadline $(($2 - 10)) \
    --filter '*Cuda*:*CUDA*' --wrapper compute-sanitizer --tool "$tool" --error-exitcode 9
  grep -v '^{' "$out/$tool.log" | head -n 20 | cut -c 1-160 | sed 's/^/   /'
}

part_memcheck() { sanitize memcheck 90; }
part_racecheck() { sanitize racecheck 90; }

echo "== Programs"
find_cublas
find_programs
if [[ $bin == "$root/bin" ]]; then export GRADSTONE_TEST_ROOT=$root; fi # others know their files
device=cuda
if [[ $small == yes ]]; then device=auto; fi
for part in "${parts[@]}"; do
  echo "== ${part^} (at $SECONDS s)"
  "part_$part"
done
sleep 1 # until the last lines are written
echo "== Results (at $SECONDS s; logs in $out)"
"${python:-python3}" "$root/tools/benchmark/device_table.py" "$out"/*.jsonl | tee "$out/table.txt"
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
