#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From nothing to a trained language model: installs what is missing, builds
# trainc, compiles a small GPT-2 to a trainer and trains it on two ranks.
#
#   examples/quickstart/run.sh [TEXT_FILE]
#
# Without a file it reads the licence texts that Debian ships. Everything it
# makes lies in build/quickstart.
set -euo pipefail
cd "$(dirname "$0")/../.."
text=${1:-}

tools/setup.sh
if [ -z "${TRAINC:-}" ]; then
  cmake --preset release >/dev/null
  cmake --build --preset release --target trainc trainc-fill
  bin=build/release/bin
else
  bin=$(dirname "$TRAINC")
fi

work=build/quickstart
rm -rf "$work"
mkdir -p "$work"
# Open MPI asks root to say so, and both ranks may share this machine's cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; "$@"; }

say '1. The text: bytes are the tokens'
if [ -n "$text" ]; then
  cp "$text" "$work/text.bin"
else
  find /usr/share/common-licenses -type f | LC_ALL=C sort | xargs cat >"$work/text.bin"
fi
wc -c "$work/text.bin"

say '2. The model: a GPT-2 of 4 layers as PyTorch exports it, with seeded random weights'
show "$bin/trainc-fill" tests/models/graphs/bytes_4.onnx -o "$work/gpt.onnx"

say '3. Compile it to a trainer'
show "$bin/trainc" "$work/gpt.onnx" --dim batch=8 --dim sequence=128 --loss cross_entropy \
  --optimizer adamw -o "$work/gpt"

train=(mpirun -n 2 "$work/gpt/trainer" train --tokens "$work/text.bin" --holdout 0.1
  --learning-rate 1e-3 --schedule cosine --schedule-steps 600 --final-learning-rate 1e-4
  --warmup-steps 40 --weight-decay 0.1 --clip-norm 1
  --run "$work/run")
say '4. Train on two ranks, and stop half-way'
show "${train[@]}" --steps 300

say '5. Resume from the checkpoint'
show "${train[@]}" --steps 600 --resume latest

say '6. The loss on the held-out last tenth, in nats per byte'
show "$work/gpt/trainer" evaluate --tokens "$work/text.bin" --holdout 0.1 --run "$work/run"

say '7. Export the trained model as ONNX'
show "$work/gpt/trainer" export --run "$work/run" -o "$work/gpt-trained.onnx"
ls -l "$work/gpt-trained.onnx"

say '8. Let it write'
show "$work/gpt/trainer" generate --run "$work/run" --prompt 'You may copy and distribute' \
  --length 400 --temperature 0.7
