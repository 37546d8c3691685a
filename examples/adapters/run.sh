#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a trained model to one that is adapted: a small GPT-2 trains on one text, and adapters beside its frozen weights
# train on another.
#
#   examples/adapters/run.sh
#
# The texts are the licences that Debian ships and the Python sources of this project. Everything it makes lies in
# build/adapters.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${TRAINC:-}" ]; then
  tools/setup.sh
  cmake --preset release >/dev/null
  cmake --build --preset release --target trainc trainc-fill trainc-data
  bin=build/release/bin
else
  bin=$(dirname "$TRAINC")
fi
work=${WORK:-build/adapters}
rm -rf "$work"
mkdir -p "$work"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }
sizes=(--dim batch=4 --dim sequence=64 --loss cross_entropy)
pace=(--schedule cosine --warmup-steps 20 --clip-norm 1)

say '1. Two texts, the last tenth of each for validation'
show "$bin/trainc-data" text /usr/share/common-licenses/* --validation-share 0.1 -o "$work/licences.bin"
show "$bin/trainc-data" text python/trainc/*.py tests/models/make/*.py --validation-share 0.1 -o "$work/python.bin"

say '2. The base: a GPT-2 of 4 layers that trains on licences'
show "$bin/trainc-fill" tests/models/graphs/bytes_4.onnx -o "$work/start.onnx"
show "$bin/trainc" "$work/start.onnx" "${sizes[@]}" -o "$work/base"
show "$work/base/trainer" train --tokens "$work/licences.bin" --steps "${STEPS:-240}" --learning-rate 2e-3 "${pace[@]}" \
  --run "$work/base-run"
show "$work/base/trainer" export --run "$work/base-run" -o "$work/base.onnx"

say '3. Adapters of rank 8 beside all linear layers; the weights stay, in 16 bits'
show "$bin/trainc" "$work/base.onnx" "${sizes[@]}" --lora '.*(attn|mlp).*weight' --lora-rank 8 --lora-alpha 16 \
  --frozen-type bf16 -o "$work/adapted"
"$bin/trainc-inspect" "$work/adapted" parameters | grep adapted | head -4

say '4. They train on Python'
show "$work/adapted/trainer" evaluate --checkpoint initial --tokens "$work/python-validation.bin"
show "$work/adapted/trainer" train --tokens "$work/python.bin" --steps "${STEPS:-240}" --learning-rate 4e-3 "${pace[@]}" \
  --run "$work/adapted-run"
show "$work/adapted/trainer" evaluate --run "$work/adapted-run" --tokens "$work/python-validation.bin"

say '5. What is kept: the adapters alone, in a checkpoint and for PEFT; or a merged model'
show "$work/adapted/trainer" export --run "$work/adapted-run" --adapter "$work/adapter" -o "$work/merged.onnx"
du -sh "$work/base-run/checkpoints" "$work/adapted-run/checkpoints" "$work/adapter"
