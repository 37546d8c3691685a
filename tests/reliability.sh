#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the suite does a few times for the safety of runs, as often as the promise says: kills, damaged files,
# failing ranks. Prints one line for each. Takes about an hour; parts by name.
#
#   tests/reliability.sh [kills|damage|ranks]...
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(damage ranks kills)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for part in "${parts[@]}"; do
  start=$SECONDS
  case $part in
  # 200 kills of one rank or of both, at any moment
  kills) KILLS=200 bash "$tree/tests/train/killed.test" "$scratch/kills" >"$scratch/log" 2>&1 ;;
  # 10,080 flipped bits and 1,120 truncations, in the manifest and in the tensors
  damage) TRAINC_TRIALS=5600 "$tree/build/dev/bin/runtime_unit_tests" --gtest_filter='CheckpointTest.EveryDamage*' >"$scratch/log" 2>&1 ;;
  # 25 times a stopped and a killed rank on two transports
  ranks) RUNS=25 bash "$tree/tests/train/stalled.test" "$scratch/ranks" >"$scratch/log" 2>&1 ;;
  *) echo "tests/reliability.sh: no part '$part'; see the head of this file" >&2; exit 2 ;;
  esac && echo "$part: passed in $((SECONDS - start)) s; $(grep -E '^hit:' "$scratch/log" || true)" ||
    { tail -20 "$scratch/log"; echo "$part: failed"; exit 1; }
done
