#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Step time of GPT-2 124M, f32, batch 4 x 64, on 2 threads: our trainer and PyTorch
# eager and torch.compile (which takes a minute first) in turns. Prints both ratios; fails
# below 1.3 x eager.
#
#   gpt2_step.sh [--build FOLDER] [--scratch FOLDER] [--python PYTHON] [--eager-only] [--rounds N]
#
# PYTHON needs the packages of tests/models/README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/release
python=python3
scratch=
pass=()
compile=(--compile)
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=$2 && shift 2 ;;
  --scratch) scratch=$2 && shift 2 ;;
  --python) python=$2 && shift 2 ;;
  --rounds) pass+=(--rounds "$2") && shift 2 ;;
  --eager-only) compile=() && shift ;;
  *) sed -n '3,10s/^# \?//p' "$0" && exit 2 ;;
  esac
done
if [ -z "$scratch" ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
fi
mkdir -p "$scratch"

if [ ! -x "$scratch/out/trainer" ]; then
  "$build/bin/trainc-fill" "$root/tests/models/graphs/gpt2_12.onnx" -o "$scratch/gpt2.onnx"
  "$build/bin/trainc" "$scratch/gpt2.onnx" --dim batch=4 --dim sequence=64 --loss cross_entropy \
    --optimizer adamw -o "$scratch/out"
fi
"$python" "$here/bench_gpt2.py" --trainer "$scratch/out/trainer" --bar 1.3 "${compile[@]}" "${pass[@]}"
