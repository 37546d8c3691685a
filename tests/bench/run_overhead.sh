#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the safety of a run costs, in processor time, so that a busy machine can tell too:
#
#   checkpoints  user and system time of a run of one rank with checkpoints in the background, 50 steps apart, far more
#                often than the default of ten minutes, over that of one without; in turns, the median of all pairs
#   watchdog     processor time of its thread over that of the rank, of two ranks
#
# and the quartiles of each. Both should be at most 1.01 and 0.01.
#
#   tests/bench/run_overhead.sh [PAIRS [STEPS]]      default 9 of 150
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
pairs=${1:-9} steps=${2:-150}
bin=$(dirname "${TRAINC:-$tree/build/release/bin/trainc}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg)"
find /usr/share/common-licenses -type f | LC_ALL=C sort | xargs cat >text.bin
"$bin/trainc-fill" "$tree/tests/models/graphs/bytes_4.onnx" -o gpt.onnx
"$bin/trainc" gpt.onnx --dim batch=8 --dim sequence=128 --loss cross_entropy --optimizer adamw --quiet -o gpt

# seconds OPTIONS...: processor time of a run, its start included
TIMEFORMAT='%U %S'
seconds() {
  { time gpt/trainer train --tokens text.bin --steps "$steps" --no-progress --run run --overwrite "$@" >out.txt 2>&1; } 2>&1 |
    awk '{ print $1 + $2 }'
}
quartiles() { # NAME FILE
  sort -g "$2" | awk -v name="$1" '{ v[NR] = $1 }
    END { printf "%-12s median %.5f  quartiles %.5f %.5f  of %d\n", name, v[int((NR + 1) / 2)], v[int((NR + 3) / 4)], v[int((3 * NR + 1) / 4)], NR }'
}

for ((pair = 0; pair < pairs; pair++)); do
  bare=$(seconds --no-checkpoints)
  saving=$(seconds --checkpoint-every 50 --keep 1)
  awk -v a="$saving" -v b="$bare" 'BEGIN { print a / b }' >>ratios
done
quartiles checkpoints ratios

# nanoseconds on a core, of each thread; the watchdog's is the only one that waits in poll
for ((pair = 0; pair < pairs; pair++)); do
  mpirun -n 2 gpt/trainer train --tokens text.bin --steps 1000000 --no-progress --run watched --overwrite --no-checkpoints >out.txt 2>&1 &
  launcher=$!
  until [ "$(grep -c loss watched/log.jsonl 2>/dev/null)" -gt 3 ] 2>/dev/null; do sleep 0.2; done
  sleep 5
  for rank in $(pgrep -P $launcher -x trainer); do
    for task in "/proc/$rank/task/"*; do
      echo "$(cut -d' ' -f1 "$task/schedstat") $(cat "$task/comm")"
    done | awk '{ total += $1 } $2 == "watchdog" { own += $1 } END { print own / total }' >>shares
  done
  kill -TERM $(pgrep -P $launcher -x trainer)
  wait $launcher || true
done
quartiles watchdog shares
