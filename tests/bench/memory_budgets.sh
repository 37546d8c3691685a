#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Ten budgets from the least that can be met to plenty: what is planned is never above the budget, and
# the predicted time falls as budgets grow, but for a part in a hundred.
#
#   memory_budgets.sh [--build FOLDER] MODEL.onnx [trainc options]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/release
if [ "${1:-}" = --build ]; then
  build=$2
  shift 2
fi
[ $# -gt 0 ] || { sed -n '3,8s/^# \?//p' "$0" && exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$build/bin/trainc" "$@" --memory-curve | tee "$scratch/curve.txt"
least=$(awk 'NR == 2 { print $1 }' "$scratch/curve.txt")
most=$(awk 'END { print $1 }' "$scratch/curve.txt")
before=
for i in 0 1 2 3 4 5 6 7 8 9; do
  budget=$((least + (most - least) * i / 9))
  "$build/bin/trainc" "$@" --memory-budget $budget --source-only --quiet -o "$scratch/out"
  read -r planned time < <(awk '/^all arenas/ { p = $5 } /^time of a step/ { print p, $NF }' "$scratch/out/plan/recompute.txt")
  echo "budget $budget planned $planned time $time"
  [ "$planned" -le $budget ] || { echo "more than the budget is planned" && exit 1; }
  awk -v a="$time" -v b="${before:-9}" 'BEGIN { exit a > b + 0.01 }' || { echo "a larger budget is slower" && exit 1; }
  before=$time
done
