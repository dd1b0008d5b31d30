#!/usr/bin/env bash
# Trains translation on a file of sentence pairs with a tab between, such as Tatoeba's, holds out a
# test by source sentences, and scores it.
#
#   curl -O https://www.manythings.org/anki/spa-eng.zip && unzip spa-eng.zip spa.txt
#   examples/tatoeba.sh spa.txt [RUN [OPTION...]]
#
# The sentences are those of tatoeba.org under CC BY 2.0 (France), in the files of
# www.manythings.org/anki; other pairs of languages lie there too. Plain or gzip; columns after the
# second are ignored. RUN is the folder of results (runs/tatoeba); options that follow are for
# train_translation and go before those below. BIN names the programs (build/release/bin). A run
# that was stopped goes on when the same line is given again.
set -euo pipefail

if [[ $# -lt 1 ]]; then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
  exit 2
fi
pairs=$1 run=${2:-runs/tatoeba}
bin=${BIN:-build/release/bin}

resume=()
if [[ -f $run/last.h5 ]]; then resume=(--resume); fi
"$bin/train_translation" --output "$run" "${resume[@]}" --train-source "$pairs" \
  --valid-pairs 1000 --held-out-test 2000 --beam 5 --bleu-tokenize 13a \
  --unit sentencepiece --subword-size 8000 \
  --width 128 --heads 4 --feed-forward 256 --encoder-layers 4 --decoder-layers 4 \
  --share-embeddings --dropout 0.1 --label-smoothing 0.1 --batch-sentences 0 --batch-tokens 4096 \
  --steps 3000 --learning-rate 0.004 --warmup 600 --validate-every 500 --average 3 "${@:3}"
"$bin/translate" --model "$run/average.h5" --input "$run/test.source" --output "$run/test.hypothesis"
"$bin/score" --metric bleu,chrf --confidence 1000 --reference "$run/test.reference" \
  "$run/test.hypothesis"
