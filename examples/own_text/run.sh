#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From texts to a trained model: trainc-data makes token files with a part for validation, and a small
# GPT-2 trains on a mixture of them.
#
#   examples/own_text/run.sh [TEXT_FILE...]
#
# Without files it reads the licence texts that Debian ships and the sources of the runtime. Everything
# it makes lies in build/own_text.
set -euo pipefail
texts=()
for text in "$@"; do texts+=("$(realpath "$text")"); done
cd "$(dirname "$0")/../.."

if [ -z "${TRAINC:-}" ]; then
  tools/setup.sh
  cmake --preset release >/dev/null
  cmake --build --preset release --target trainc trainc-fill trainc-data
  bin=build/release/bin
else
  bin=$(dirname "$TRAINC")
fi
work=${WORK:-build/own_text}
rm -rf "$work"
mkdir -p "$work"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }

say '1. Tokens: bytes, the last tenth of each text for validation'
if [ ${#texts[@]} -gt 0 ]; then
  show "$bin/trainc-data" text "${texts[@]}" --validation-share 0.1 -o "$work/text.bin"
  tokens=(--tokens "$work/text.bin")
  validation=(--validation-tokens "$work/text-validation.bin")
else
  show "$bin/trainc-data" text /usr/share/common-licenses/* --validation-share 0.1 -o "$work/licences.bin"
  show "$bin/trainc-data" text runtime/*/*.cpp --validation-share 0.1 -o "$work/sources.bin"
  tokens=(--tokens "$work/licences.bin:0.7" --tokens "$work/sources.bin:0.3")
  validation=(--validation-tokens "$work/licences-validation.bin" --validation-tokens "$work/sources-validation.bin")
fi

say '2. The model: a GPT-2 of 4 layers with seeded random weights, compiled to a trainer'
show "$bin/trainc-fill" tests/models/graphs/bytes_4.onnx -o "$work/gpt.onnx"
show "$bin/trainc" "$work/gpt.onnx" --dim batch=4 --dim sequence=64 --loss cross_entropy \
  --optimizer adamw -o "$work/gpt"

say '3. Train, and look at the validation loss in nats per byte'
show "$work/gpt/trainer" train "${tokens[@]}" "${validation[@]}" --evaluate-every 40 \
  --validation-batches 16 --steps "${STEPS:-120}" --learning-rate 2e-3 --schedule cosine --warmup-steps 20 \
  --clip-norm 1 --run "$work/run"
grep held_out_loss "$work/run/log.jsonl"

say '4. Let it write'
show "$work/gpt/trainer" generate --run "$work/run" --prompt 'The licence' --length 200 --temperature 0.7
