#!/usr/bin/env bash
# Trains English-German translation on Multi30k, 29,000 image captions, and scores its test sets.
#
#   git clone --depth 1 https://github.com/multi30k/dataset multi30k
#   examples/multi30k.sh RECIPE [FROM TO [OPTION...]]
#
# RECIPE is one of
#   published  the Transformer-Tiny of Wu et al., "Good for misconceived reasons" (ACL 2021): 2.57
#              million parameters, 10,000 byte pairs, lower-cased tokens; they report 41.02 BLEU on
#              test_2016_flickr, 33.36 on test_2017_flickr, 29.88 on test_2017_mscoco
#   quick      the same data and size in 20 minutes, for people in a hurry
#   raw        the same size on the text as it was written, by SentencePiece, scored by 13a
# FROM TO are the languages, "en de" unless given; options that follow are for train_translation and
# go before the recipe's. The captions are for research and education, not for commerce; see the
# licence in their repository.
#
# The environment may name the data (MULTI30K=multi30k/data/task1), the programs
# (BIN=build/release/bin) and the folder of results (RUN=runs/multi30k_RECIPE_FROM_TO). A run that
# was stopped goes on where it was when the same line is given again.
set -euo pipefail

recipe=${1:-} from=${2:-en} to=${3:-de}
data=${MULTI30K:-multi30k/data/task1}
bin=${BIN:-build/release/bin}
run=${RUN:-runs/multi30k_${recipe}_${from}_$to}
tests=(test_2016_flickr test_2017_flickr test_2017_mscoco)

# The file of one side of a split, plain or packed.
file() {
  local name=tok/$1.lc.norm.tok.$2
  if [[ $recipe == raw ]]; then name=raw/$1.$2; fi
  for name in "$data/$name" "$data/$name.gz"; do
    if [[ -f $name ]]; then echo "$name" && return; fi
  done
  echo "multi30k: there is no $name; see the top of $0 for where to get it" >&2
  return 1
}

# The files of one side of all tests, with commas between.
test_files() {
  local names=() name test
  for test in "${tests[@]}"; do
    name=$(file "$test" "$1") || return
    names+=("$name")
  done
  local IFS=,
  echo "${names[*]}"
}

options=(
  --width 128 --heads 4 --feed-forward 256 --encoder-layers 4 --decoder-layers 4
  --share-embeddings --dropout 0.3 --label-smoothing 0.1
  --batch-sentences 0 --maximum-length 512 --beam 5
)
short=(
  --batch-tokens 4096 --steps 5000 --schedule linear --learning-rate 0.004
  --warmup 600 --validate-every 250 --average 3
)
scores=(--multi-bleu)
case $recipe in
  published)
    # Two batches a step, as on the two GPUs of the paper: a batch holds pairs of about one length,
    # and over two lengths a step learns better. 3550 labels stand for 4096 places with padding.
    options+=(
      --unit byte-pair --merges 10000 --post-norm
      --batch-tokens 3550 --accumulate 2 --steps 8000
      --schedule inverse_square_root --learning-rate 0.005 --warmup 2000
      --epsilon 1e-8 --clip 25 --validate-every 60 --average 10
    ) ;;
  quick)
    options+=("${short[@]}" --unit byte-pair --merges 10000) ;;
  raw)
    scores=(--metric bleu,chrf)
    options+=("${short[@]}" --unit sentencepiece --subword-size 8000 --bleu-tokenize 13a) ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2 && exit 2 ;;
esac

train_source=$(file train "$from")
train_target=$(file train "$to")
valid_source=$(file val "$from")
valid_target=$(file val "$to")
test_source=$(test_files "$from")
test_target=$(test_files "$to")
if [[ -f $run/last.h5 ]]; then options+=(--resume); fi
"$bin/train_translation" --output "$run" "${options[@]}" "${@:4}" \
  --train-source "$train_source" --train-target "$train_target" \
  --valid-source "$valid_source" --valid-target "$valid_target" \
  --test-source "$test_source" --test-target "$test_target"
for test in "${tests[@]}"; do
  source=$(file $test "$from")
  reference=$(file $test "$to")
  "$bin/translate" --model "$run/average.h5" --input "$source" --output "$run/$test.$to"
  echo "$test"
  "$bin/score" "${scores[@]}" --reference "$reference" "$run/$test.$to"
done
