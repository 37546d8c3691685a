#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From texts with labels to a classifier: trainc-data makes tokens, masks and labels, and a small transformer trains on
# them.
#
#   examples/labelled_text/run.sh [FILE.jsonl|FILE.csv]
#
# The file has a `text` and a `label` for each sample, of at most four classes. Without a file, the texts are pieces of
# licences that Debian ships and of this project's sources, and the classifier says what one is written in. Everything it
# makes lies in build/labelled_text.
set -euo pipefail
[ $# = 0 ] || file=$(realpath "$1")
cd "$(dirname "$0")/../.."

if [ -z "${TRAINC:-}" ]; then
  tools/setup.sh
  cmake --preset release >/dev/null
  cmake --build --preset release --target trainc trainc-fill trainc-data
  bin=build/release/bin
else
  bin=$(dirname "$TRAINC")
fi
work=${WORK:-build/labelled_text}
rm -rf "$work"
mkdir -p "$work"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }

if [ -z "${file:-}" ]; then
  say '0. A table of texts and what they are written in'
  file=$work/languages.csv
  # pieces LABEL FILE...: 120 characters of each file in turn, as a field in quotes
  pieces() {
    local label=$1
    shift
    cat "$@" | tr -s ' \n\t' ' ' | fold -w 120 | sed -n "1,400{s/\"/\"\"/g; s/.*/\"&\",$label/; p}"
  }
  { echo text,label
    pieces English /usr/share/common-licenses/*
    pieces C++ runtime/*/*.cpp
    pieces Python python/trainc/*.py tests/models/make/*.py
    pieces shell tools/*.sh tests/*.sh tests/train/*.sh
  } >"$file"
  wc -l "$file"
fi

say '1. Tokens, masks and labels: bytes are the tokens, a tenth is for validation'
show "$bin/trainc-data" labelled "$file" --length 128 --validation-share 0.1 -o "$work/data"

say '2. The model: a transformer of two layers with seeded random weights, compiled to a trainer'
show "$bin/trainc-fill" tests/models/graphs/texts_2.onnx -o "$work/classifier.onnx"
show "$bin/trainc" "$work/classifier.onnx" --dim batch=16 --dim sequence=128 --loss cross_entropy \
  --optimizer adamw -o "$work/classifier"

say '3. Train, and look at loss and accuracy of the texts that were kept'
inputs=()
for name in input_ids attention_mask labels; do
  inputs+=(--data "$name=$work/data/$name.npy" --validation-data "$name=$work/data/$name-validation.npy")
done
show "$work/classifier/trainer" train "${inputs[@]}" --epochs "${EPOCHS:-12}" \
  --evaluate-every 2epochs --learning-rate 1e-3 --schedule cosine --warmup-steps 20 --clip-norm 1 --run "$work/run"
grep held_out_accuracy "$work/run/log.jsonl"
