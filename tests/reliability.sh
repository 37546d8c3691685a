#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the suite does a few times for the safety of runs, as often as the promise says: kills, damaged files,
# failing ranks; and what it does not do, two hours of training. Prints the figures of each. Takes three hours;
# parts by name.
#
#   tests/reliability.sh [kills|damage|ranks|soak]...
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(damage ranks kills soak)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for part in "${parts[@]}"; do
  start=$SECONDS
  case $part in
  # 200 kills of one rank or of both, at any moment
  kills) KILLS=200 bash "$tree/tests/train/runs/killed.test" "$scratch/kills" >"$scratch/log" 2>&1 ;;
  # 10,080 flipped bits and 1,120 truncations, in the manifest and in the tensors
  damage) TRAINC_TRIALS=5600 "$tree/build/dev/bin/runtime_unit_tests" --gtest_filter='CheckpointTest.EveryDamage*' >"$scratch/log" 2>&1 ;;
  # 13 times a rank that is stopped, is killed, aborts or throws, on two transports: 104 failures
  ranks) RUNS=13 bash "$tree/tests/train/ranks/failing_ranks.test" "$scratch/ranks" >"$scratch/log" 2>&1 ;;
  soak) bash "$tree/tests/train/soak.sh" "$scratch/soak" >"$scratch/log" 2>&1 ;;
  *) echo "tests/reliability.sh: no part '$part'; see the head of this file" >&2; exit 2 ;;
  esac && {
      echo "$part: passed in $((SECONDS - start)) s"
      grep -E '^(hit|worst|soak):' "$scratch/log" || true
    } || { tail -20 "$scratch/log"; echo "$part: failed"; exit 1; }
done
