#!/usr/bin/env bash
# From a fresh clone to a trained translation model.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'EOF'
usage: tools/quickstart.sh [--no-setup] [train_translation arguments]

Installs what is missing (Debian 12), builds, trains a small English-German Transformer on a
generated corpus into runs/toy, and shows how to translate with it.
  --no-setup    install nothing

  tools/quickstart.sh --seed 2        arguments go on to train_translation
EOF
}

setup=yes
while [[ $# -gt 0 ]]; do
  case $1 in
    --no-setup) setup=no && shift ;;
    --help | -h) usage && exit 0 ;;
    *) break ;;
  esac
done

if [[ $setup == yes ]]; then tools/setup.sh; fi

if [[ -e runs/toy/last.h5 ]]; then
  echo "runs/toy holds a run already. Go on with it, or move it away and start anew:"
  echo "  build/release/bin/train_translation --output runs/toy --resume"
  echo "  mv runs/toy runs/toy_before && tools/quickstart.sh"
  exit 1
fi

echo "== Building the programs"
started=$SECONDS
tools/configure.sh release
cmake --build --preset release --parallel "$(nproc)"
echo "== Built in $((SECONDS - started)) s; training into runs/toy"
build/release/bin/train_translation --output runs/toy "$@"

echo "== Translate with it, a line at a time or from a pipe:"
example='yesterday a brother opened your door because he did not arrive .'
echo "  echo \"$example\" | build/release/bin/translate --attention"
echo "$example" | build/release/bin/translate --model runs/toy/best.h5 --attention
