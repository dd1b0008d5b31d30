#!/usr/bin/env bash
# Installs what the build needs on Debian 12, and only what is missing.
set -euo pipefail

build=(
  cmake g++ ninja-build pkg-config
  libopenblas0-pthread  # matrix products; opened at run time
  libdnnl2              # faster matrix products on recent processors; opened at run time
  libhdf5-dev libcxxopts-dev libfmt-dev nlohmann-json3-dev libhwy-dev libutf8proc-dev
  libsentencepiece-dev zlib1g-dev
)
tests=(libgtest-dev libgmock-dev libbenchmark-dev python3 python3-h5py python3-numpy)
race=(clang-14 libclang-rt-14-dev libomp-14-dev)
checks=(
  clang-format-14 clang-tidy-14 libomp-14-dev
  ccache  # most objects of the build "emulate" are those of "test"
)

usage() {
  cat <<EOF
usage: tools/setup.sh [--tests] [--race] [--checks]

Installs with apt-get, as root or with sudo, those packages that are missing; says nothing where
all are there.
  always     ${build[*]}
  --tests    ${tests[*]}
  --race     ${race[*]}
  --checks   ${checks[*]}
EOF
}

wanted=("${build[@]}")
for argument in "$@"; do
  case $argument in
    --tests) wanted+=("${tests[@]}") ;;
    --race) wanted+=("${race[@]}") ;;
    --checks) wanted+=("${checks[@]}") ;;
    --help | -h) usage && exit 0 ;;
    *) echo "setup.sh: $argument: unknown option; see --help" >&2 && exit 2 ;;
  esac
done

system=$( (. /etc/os-release && echo "$ID $VERSION_ID") 2>/dev/null || uname -s)
if [[ $system != "debian 12" ]]; then
  cat >&2 <<EOF
setup.sh: packages are installed on Debian 12 only, this is: $system
Install these by your own means (the names are Debian's), then give --no-setup to the script that
called this one:
  ${wanted[*]}
EOF
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  # shellcheck disable=SC2016  # ${...} is dpkg's own
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: needs root to install: ${missing[*]}; run it as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "== Installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq </dev/null
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" </dev/null
