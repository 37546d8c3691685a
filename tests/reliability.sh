#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the suite does a few times for the safety of runs, as often as the promise says: kills, damaged files, failing
# ranks, hosts and links, full disks, compilers that are interrupted; and what it does not do, two hours of training.
# Prints the figures of each. Takes five hours; parts by name. With --hours N the parts but the last are done in turn, a
# few times each and with new seeds, for so long, and a table is printed of how often each was and passed.
#
#   tests/reliability.sh [damage|ranks|kills|hosts|disks|interrupts|soak]...
#   tests/reliability.sh --hours N [PART]...
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
hours=
[ "${1:-}" != --hours ] || { hours=$2; shift 2; }
parts=("$@")
all=(damage ranks kills hosts disks interrupts soak)
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
for name in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $name "* ]] || { echo "tests/reliability.sh: no part '$name'; see the head of this file" >&2; exit 2; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# part NAME MANY: as often as the promise says with MANY=1, else a few times
part() {
  local few=0
  [ "$2" = 1 ] || few=1
  of() { [ $few = 1 ] && echo "$2" || echo "$1"; } # of MANY FEW
  run() { bash "$tree/tests/train/$1" "$scratch/$name"; }
  local name=$1
  case $name in
  # flipped bits and truncations of the manifest and the tensors: 10,080 and 1,120
  damage) TRAINC_TRIALS=$(of 5600 200) "$tree/build/dev/bin/runtime_unit_tests" --gtest_filter='CheckpointTest.EveryDamage*' ;;
  # a rank that is stopped, is killed, aborts or throws, on two transports: 104 failures
  ranks) RUNS=$(of 13 1) run ranks/failing_ranks.test ;;
  # kills of one rank or of both, at any moment
  kills) KILLS=$(of 200 10) run runs/killed.test ;;
  # the same on four hosts with disks of their own, links that are cut, hosts that are lost
  hosts) COUNT=4 KILLS=$(of 200 8) CUTS=$(of 50 2) HOSTS_LOST=$(of 10 1) run ranks/broken_hosts.test ;;
  # a disk that is full at each write, and one that fills up
  disks) run runs/full_disk.test && run runs/filled_disk.test ;;
  # trainc, at random moments
  interrupts) KILLS=$(of 1000 40) run compile/interrupted.test ;;
  soak) run soak.sh ;;
  esac
}

if [ -z "$hours" ]; then
  for name in "${parts[@]}"; do
    start=$SECONDS
    part "$name" 1 >"$scratch/log" 2>&1 || { tail -20 "$scratch/log"; echo "$name: failed"; exit 1; }
    echo "$name: passed in $((SECONDS - start)) s"
    grep -E '^(hit|worst|soak):' "$scratch/log" || true
  done
  exit
fi

declare -A passed=() failed=() slowest=()
end=$((SECONDS + $(awk "BEGIN { print int($hours * 3600) }")))
while ((SECONDS < end)); do
  for name in "${parts[@]}"; do
    [ "$name" != soak ] && ((SECONDS < end)) || continue
    export SEED=$RANDOM
    start=$SECONDS
    if part "$name" 0 >"$scratch/log" 2>&1; then
      passed[$name]=$((${passed[$name]:-0} + 1))
    else
      failed[$name]=$((${failed[$name]:-0} + 1))
      echo "$name: failed with SEED=$SEED"
      tail -20 "$scratch/log"
    fi
    time=$((SECONDS - start))
    ((time <= ${slowest[$name]:-0})) || slowest[$name]=$time
  done
done
printf '%-12s %8s %8s %10s\n' part passed failed slowest
for name in "${parts[@]}"; do
  [ "$name" = soak ] || printf '%-12s %8d %8d %8d s\n' "$name" "${passed[$name]:-0}" "${failed[$name]:-0}" "${slowest[$name]:-0}"
done
((${#failed[@]} == 0))
