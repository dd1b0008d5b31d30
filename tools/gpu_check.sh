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
  training    training steps of three models
  rates       kernels beside the limits of the device
  memcheck    compute-sanitizer over the tests of kernels, where it is installed
  racecheck   the same for races in shared memory
  pytorch     the training steps in PyTorch, where python3 has it
  --small     tiny sizes on any device, to try this script itself

--prepare, on the machine that builds: builds the preset portable and packs all that is needed; the
programs in it need no more than a driver of CUDA 13 and cuBLAS. Without them, or where they do not
run, this script builds here.

Logs go to build/gpu_check; the folder OUT, if it is named, gets the table and an archive of them.
BIN names other programs than those of bin/ beside tools/; SECONDS_IN_ALL (default 460) is the limit
of all parts together.
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
    echo "there: python3 -m tarfile -e $(basename "$1") && OUT=\$PWD/out gradstone/tools/gpu_check.sh"
}

# How the time is divided; what a part leaves over goes to those behind it.
declare -A share=([machine]=15 [tests]=90 [training]=90 [rates]=60 [memcheck]=45 [racecheck]=45 [pytorch]=110)
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
    *)
      [[ -v share[$1] ]] || { echo "gpu_check.sh: $1: no such part or option; see --help" >&2 && exit 2; }
      parts+=("$1") && shift
      ;;
  esac
done
[[ ${#parts[@]} -gt 0 ]] || parts=(machine tests training rates memcheck racecheck pytorch)

out=$root/build/gpu_check
rm -rf "$out" && mkdir -p "$out" || exit 1
bin=${BIN:-$root/bin}
PATH=$PATH:/usr/local/cuda/bin
budget=${SECONDS_IN_ALL:-460}
jobs=$(nproc)
python=$(command -v python3 || true)
given_libraries=${LD_LIBRARY_PATH:-}

keep_results() {
  [[ -n ${OUT:-} ]] || return
  mkdir -p "$OUT" && cp "$out/table.txt" "$OUT"
  tar -czf "$OUT/gpu_check.tar.gz" -C "$out" .
}
trap keep_results EXIT

fail() {
  echo "   $1 FAILED: $2" | tee -a "$out/failed.txt"
}

# What is left of the part's time, but no more than that many seconds.
limit() {
  local left=$((part_ends - SECONDS))
  echo $((left < $1 ? left : $1))
}

# attempt NAME SECONDS COMMAND...: what it says goes to NAME.log, of which the table takes JSON lines.
attempt() {
  local name=$1 most status
  most=$(limit "$2")
  shift 2
  if [[ $most -lt 3 ]]; then
    fail "$name" "no time is left" && return 1
  fi
  timeout -k 3 "$most" "$@" >>"$out/$name.log" 2>&1
  status=$?
  if [[ $status -eq 124 || $status -eq 137 ]]; then
    fail "$name" "not done after $most s: ${*//"$root/"/}"
  elif [[ $status -ne 0 ]]; then
    fail "$name" "ended with $status: ${*//"$root/"/}"
    grep -v '^{' "$out/$name.log" | tail -n 1 | cut -c 1-300 | sed 's/^/      /'
  fi
  return "$status"
}

# run_tests NAME ARGUMENTS...: run_suites.py ends in time to tell what it has seen.
run_tests() {
  local name=$1 most
  most=$(limit 1000)
  shift
  OMP_NUM_THREADS=2 attempt "$name" "$most" "$root/tools/run_suites.py" "$bin/gradstone_tests" --part "$name" \
    --log "$out/$name.suites.log" --jobs "$jobs" --deadline $((most - 8)) "$@"
  grep -v '^{' "$out/$name.log" | head -n 40 | cut -c 1-160 | sed 's/^/   /'
}

# cuBLAS lies in a toolkit or in a Python package; programs of the archive know neither.
find_cublas() {
  local file
  if ldconfig -p 2>/dev/null | grep -q 'libcublasLt\.so\.13'; then return; fi
  file=$(timeout 15 find /usr/local /opt /usr/lib /root /home -name 'libcublasLt.so.13' 2>/dev/null | head -n 1)
  if [[ -z $file ]]; then
    fail programs "libcublasLt.so.13 is nowhere; install the CUDA Toolkit 13's cuBLAS"
    return
  fi
  LD_LIBRARY_PATH=$(dirname "$file")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
}

programs_run() {
  [[ -x $bin/gradstone_tests ]] && timeout 20 "$bin/gradstone_tests" --gtest_list_tests >"$out/programs.log" 2>&1
}

# The carried programs, or else what can be built here.
find_programs() {
  part_ends=$((budget * 3 / 4))
  if programs_run; then return; fi
  if [[ -e $root/lib/libstdc++.so.6 ]] && grep -q 'GLIBC_' "$out/programs.log"; then
    echo "   $(tail -n 1 "$out/programs.log")"
    echo "   so with this machine's libstdc++ in place of the carried one"
    mkdir -p "$root/lib/unused" && mv "$root"/lib/lib{stdc++,gcc_s}.so.* "$root/lib/unused/"
    if programs_run; then return; fi
  fi
  [[ ! -x $bin/gradstone_tests ]] || echo "   $bin/gradstone_tests does not run: $(tail -n 1 "$out/programs.log")"
  echo "== Building here"
  bin=$root/build/portable/bin
  attempt build 300 env -C "$root" bash -c 'tools/configure.sh portable &&
    cmake --build --preset portable --parallel --target gradstone_tests device_rates training_step'
  if [[ ! -x $bin/gradstone_tests ]]; then
    fail programs "there are none, so nothing of Gradstone runs"
    tail -n 5 "$out/build.log" | cut -c 1-300
  fi
}

# That they compute on the device: tests leave one out that cannot be used.
find_device() {
  local driver
  driver=$(timeout 10 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
  if [[ ${driver%%.*} =~ ^[0-9]+$ && ${driver%%.*} -lt 580 ]]; then
    fail device "the driver $driver is older than CUDA 13's: install 580 or later, or the package cuda-compat-13-0"
  fi
  part_ends=$((SECONDS + 30))
  attempt device 30 "$bin/training_step" --device "$device" --model tiny --tokens 32 --steps 1 --warm-up 0
}

part_machine() {
  {
    timeout 10 nvidia-smi 2>&1 || echo "no nvidia-smi that works"
    timeout 5 nvcc --version 2>&1 || echo "no nvcc"
    grep -m 1 'model name' /proc/cpuinfo
    echo "$jobs processors, $(getconf GNU_LIBC_VERSION)"
    timeout 10 "${python:-python3}" -c 'from importlib import metadata as m; print("torch", m.version("torch"))' 2>&1 | tail -n 1
    timeout 10 compute-sanitizer --version 2>&1 || echo "no compute-sanitizer"
  } >"$out/machine.log" 2>&1
  grep -hE 'NVIDIA|release|model name|processors|torch|[Vv]ersion 2|^no ' "$out/machine.log" | cut -c 1-110 | sed 's/^/   /'
}

part_tests() {
  local only=()
  if [[ $small == yes ]]; then only=(--filter 'CudaReduce.*:CudaRandom.*:Shape.*'); fi
  run_tests tests "${only[@]}"
}

part_training() {
  local model precision tokens steps at_once options
  for precision in bfloat16 tf32 float32; do
    for model in tiny10k base big; do
      tokens=25000 steps=20 at_once=5
      if [[ $model == tiny10k ]]; then tokens=4096 steps=200 at_once=50; fi
      if [[ $small == yes ]]; then model=tiny tokens=32 steps=1; fi
      options=(--device "$device" --model "$model" --tokens "$tokens" --precision "$precision" --warm-up 4
        --steps "$steps" --at-once "$at_once")
      attempt training 40 "$bin/training_step" "${options[@]}"
      if [[ $small == yes ]]; then break; fi
      if [[ $precision == bfloat16 ]]; then attempt training 40 "$bin/training_step" "${options[@]}" --time-products; fi
    done
  done
}

part_rates() {
  local group sizes=()
  if [[ $small == yes ]]; then sizes=(--tokens 48 --widths 32 --vocabulary 64 --seconds 0); fi
  for group in products attention losses elements rows embeddings optimizers; do
    attempt rates 40 "$bin/device_rates" --device "$device" --group "$group" "${sizes[@]}"
  done
}

# sanitize TOOL SUITES ARGUMENTS...: over the tests that are of CUDA alone, but for those suites.
# Without the cache each block has its exact size, and accesses beyond it are seen. Tests look at
# calls of CUDA that fail themselves: some do on purpose.
sanitize() {
  local tool=$1 suites="*Cuda*:*CUDA*-$2"
  shift 2
  if ! command -v compute-sanitizer >/dev/null; then
    fail "$tool" "no compute-sanitizer is installed" && return
  fi
  if [[ $small == yes ]]; then suites='CudaReduce.*:CudaRandom.*'; fi
  GRADSTONE_CUDA_CACHE=0 run_tests "$tool" --filter "$suites" --wrapper compute-sanitizer --tool "$tool" \
    --report-api-errors no --error-exitcode 9 "$@"
}

part_memcheck() { sanitize memcheck 'DeviceOnCuda.*:ProgramsIn*'; }
# Of our kernels alone: those of cuBLAS take long.
part_racecheck() {
  sanitize racecheck 'DeviceOnCuda.*:ProgramsIn*:TrainingOnCuda.*' --kernel-name kernel_substring=2gs7backend
}

part_pytorch() {
  local script=$root/tools/benchmark/pytorch_device_training.py mode
  export LD_LIBRARY_PATH=$given_libraries # it has its own cuBLAS
  if ! timeout 10 "${python:-python3}" -c 'from importlib import metadata as m; m.version("torch")' >/dev/null 2>&1; then
    fail pytorch "python3 has no torch" && return
  fi
  if [[ $small == yes ]]; then
    attempt pytorch 200 "$python" "$script" --device cpu --models tiny --tokens 32 --steps 1 --at-once 1 \
      --warm-up 1 --modes eager
    return
  fi
  attempt pytorch 60 "$python" "$script" --modes eager --steps 10 --warm-up 3
  for mode in graph compile; do
    attempt pytorch 100 "$python" "$script" --modes "$mode" --precisions bfloat16 tf32
  done
}

device=cuda
if [[ $small == yes ]]; then device=auto; fi
echo "== Programs"
find_cublas
find_programs
if [[ $bin == "$root/bin" ]]; then export GRADSTONE_TEST_ROOT=$root; fi # others know their files
find_device
begin=$SECONDS
all=0
for part in "${parts[@]}"; do all=$((all + share[$part])); done
so_far=0
logs=()
for part in "${parts[@]}"; do
  so_far=$((so_far + share[$part]))
  part_ends=$((begin + (budget - begin) * so_far / all))
  echo "== ${part^} (at $SECONDS s)"
  "part_$part"
  if [[ -e $out/$part.log ]]; then logs+=("$out/$part.log"); fi
done
echo "== Results (at $SECONDS s; logs in $out)"
timeout 10 "${python:-python3}" "$root/tools/benchmark/device_table.py" "${logs[@]}" | tee "$out/table.txt"
if [[ -e $out/failed.txt ]]; then
  sort -u "$out/failed.txt" | cut -c 1-300 | tee -a "$out/table.txt"
  exit 1
fi
