#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Trains a reference model from seeded random weights and prints its losses beside those that PyTorch has from the same
# weights on the same batches.
#
#   examples/reference/run.sh resnet|squeezenet|vit|unet|lstm|gpt2
#
#   resnet      a small ResNet        which of four shapes is on a picture
#   squeezenet  SqueezeNet 1.1        the same
#   vit         a Vision Transformer  the same
#   unet        a U-Net               which pixels are the shape's, and of which it is
#   lstm        two layers of LSTM    the next byte of Debian's licence texts
#   gpt2        GPT-2 124M            the same, in steps of a few seconds
#
# The pictures are drawn by shapes.py. Everything that it makes lies in build/reference. STEPS=N trains another number of steps.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=examples/reference
name=${1:-}

steps=200 rate=1e-3 deviation=he loss=cross_entropy labels=classes.npy graph=$here/$name.onnx dimensions=(--dim batch=16)
case $name in
resnet) rate=2e-3 ;;
squeezenet) rate=1e-4 ;;
vit) rate=1e-3 ;;
unet) labels=masks.npy loss=cross_entropy,axis=1 steps=100 ;;
lstm) rate=3e-3 deviation=0.1 steps=100 ;;
gpt2) rate=3e-4 deviation=0.02 steps=20 graph=tests/models/graphs/gpt2_12.onnx dimensions=(--dim batch=4 --dim sequence=64) ;;
*)
  sed -n '3,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
  exit 2
  ;;
esac
steps=${STEPS:-$steps}

if [ -z "${TRAINC:-}" ]; then
  tools/setup.sh
  cmake --preset release >/dev/null
  cmake --build --preset release --target trainc trainc-fill
  bin=build/release/bin
else
  bin=$(dirname "$TRAINC")
fi
work=${WORK:-build/reference/$name}
rm -rf "$work"
mkdir -p "$work"
say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }

say '1. The data'
case $name in
lstm | gpt2)
  cat /usr/share/common-licenses/GPL-3 /usr/share/common-licenses/GPL-2 /usr/share/common-licenses/LGPL-2 /usr/share/common-licenses/MPL-2.0 /usr/share/common-licenses/Apache-2.0 >"$work/text.bin"
  data=(--tokens "$work/text.bin" --token-type u8)
  ;;
*)
  show python3 $here/shapes.py "$work" $((16 * steps))
  data=(--data "images=$work/images.npy" --data "labels=$work/$labels")
  ;;
esac

say '2. The model, with seeded random weights, compiled to a trainer'
show "$bin/trainc-fill" "$graph" --deviation $deviation -o "$work/model.onnx"
show "$bin/trainc" "$work/model.onnx" "${dimensions[@]}" --loss $loss --optimizer adamw -o "$work/model"

say '3. Training'
show "$work/model/trainer" train "${data[@]}" --steps "$steps" --no-shuffle --learning-rate $rate --run "$work/run" --no-progress >"$work/said.txt"
tail -3 "$work/said.txt"

say '4. The losses, and those of PyTorch'
python3 - "$work/run/log.jsonl" "$here/$name.json" <<'PYTHON'
import json, os, sys
ours = [record["loss"] for record in map(json.loads, open(sys.argv[1])) if "loss" in record]
theirs = json.load(open(sys.argv[2]))["losses"] if os.path.exists(sys.argv[2]) else []
print(" step     trainc    PyTorch")
for step in sorted({0, len(ours) - 1} | set(range(9, len(ours), 10))):
    print("%5d %10.5f %10s" % (step + 1, ours[step], "%.5f" % theirs[step] if step < len(theirs) else "-"))
PYTHON
