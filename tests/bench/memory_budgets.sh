#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Ten budgets from the least that can be met to plenty: what is planned is never above the budget, and
# the predicted time falls as budgets grow, but for a part in a hundred. With --train, the words after
# `trainer train` that name the data, each is trained three steps, too: what is resident is at most 60 MB
# more than planned. Seconds of a step are printed; they mean something on a machine that does nothing else.
#
#   memory_budgets.sh [--build FOLDER] [--train "WORDS"] MODEL.onnx [trainc options]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/release
train=
while :; do
  case ${1:-} in
  --build) build=$2 && shift 2 ;;
  --train) train=$2 && shift 2 ;;
  '') sed -n '3,10s/^# \?//p' "$0" && exit 2 ;;
  *) break ;;
  esac
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$build/bin/trainc" "$@" --memory-curve | tee "$scratch/curve.txt"
least=$(awk 'NR == 2 { print $1 }' "$scratch/curve.txt")
most=$(awk 'END { print $1 }' "$scratch/curve.txt")
before=
only=()
[ -n "$train" ] || only=(--source-only)
for i in 0 1 2 3 4 5 6 7 8 9; do
  budget=$((least + (most - least) * i / 9))
  "$build/bin/trainc" "$@" --memory-budget $budget "${only[@]}" --quiet -o "$scratch/out"
  read -r planned time < <(awk '/^all arenas/ { p = $5 } /^time of a step/ { print p, $NF }' <("$build/bin/trainc-inspect" "$scratch/out" recompute))
  echo "budget $budget planned $planned time $time"
  [ "$planned" -le $budget ] || { echo "more than the budget is planned" && exit 1; }
  awk -v a="$time" -v b="${before:-9}" 'BEGIN { exit a > b + 0.01 }' || { echo "a larger budget is slower" && exit 1; }
  before=$time
  [ -n "$train" ] || continue
  # shellcheck disable=SC2086 # words
  OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} python3 "$root/tests/bench/measure.py" "$scratch/out/trainer" train $train --steps 3 \
    --no-checkpoints --no-progress --run "$scratch/run" --overwrite >"$scratch/measured" 2>"$scratch/said" ||
    { cat "$scratch/said" && exit 1; }
  read -r _ megabytes <"$scratch/measured"
  milliseconds=$(sed -n 's/.*"milliseconds": \([0-9.]*\).*/\1/p' "$scratch/run/log.jsonl" | sort -g | head -1)
  echo "  resident $megabytes MiB, planned $((planned / 1048576)) MiB, a step $milliseconds ms"
  awk -v r="$megabytes" -v p="$planned" 'BEGIN { exit r * 1048576 > p + 60e6 }' || { echo "more is resident than planned and 60 MB" && exit 1; }
done
