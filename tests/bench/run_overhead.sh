#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the safety of a run costs, in processor time, so that a busy machine can tell too, each as a share of a step of a
# GPT of 1.9 million parameters on one core:
#
#   watchdog     its thread's time over that of its rank, of two ranks
#   checkpoints  what one costs more than none, snapshot, writing and worker, over the ten minutes that lie between two
#                by default; besides, with one each 50 steps
#   flag         the update of the emitted source less the same without its selections by `is_applied`
#   log          a whole step of a network of a few hundred parameters, its own arithmetic included: more than the line
#                of the log, the schedule, the agreement of the ranks and the progress take
#
# Each share should be at most 1 %; ends with 1 where one is not.
#
#   tests/bench/run_overhead.sh [PAIRS]      default 3 of each measurement, of which the median counts
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
pairs=${1:-3}
steps=40 small_steps=20000
bin=$(dirname "${TRAINC:-$tree/build/release/bin/trainc}")
models=$tree/tests/models
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg)"
find /usr/share/common-licenses -type f | LC_ALL=C sort | xargs cat >text.bin
"$bin/trainc-fill" "$models/graphs/bytes_4.onnx" -o gpt.onnx
"$bin/trainc" gpt.onnx --dim batch=8 --dim sequence=128 --loss cross_entropy --optimizer adamw --quiet -o gpt
"$bin/trainc" "$models/mlp_relu_dynamo18.onnx" --dim batch=8 --loss cross_entropy --quiet -o small

# seconds TRAINER OPTIONS...: processor time of a run, its start included
TIMEFORMAT='%U %S'
seconds() {
  { time "$1/trainer" train --no-progress --run run --overwrite "${@:2}" >out.txt 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}
gpt() { seconds gpt --tokens text.bin "$@"; }
small() { seconds small --data "x=$models/data/x.npy" --data "labels=$models/data/classes.npy" --no-checkpoints "$@"; }
median() { sort -g "$1.samples" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# per NAME MORE LESS COUNT: notes a difference
per() { awk -v more="$2" -v less="$3" -v count="$4" 'BEGIN { print (more - less) / count }' >>"$1.samples"; }

for ((pair = 0; pair < pairs; pair++)); do
  start=$(gpt --no-checkpoints --steps 1)
  bare=$(gpt --no-checkpoints --steps $((steps + 1)))
  per step "$bare" "$start" $steps
  per checkpoint "$(gpt --checkpoint-every 2 --keep 1 --steps $((steps + 1)))" "$bare" $((steps / 2 + 1))
  per small "$(small --steps $((small_steps + 1)))" "$(small --steps 1)" $small_steps
done

# The update with the flag and without, from the emitted source.
sed 's/is_applied_value ? \(next_[a-z_]*\) : [a-z_]*;/\1;/' gpt/source/kernels.cpp >gpt/source/kernels_without.cpp
! cmp -s gpt/source/kernels.cpp gpt/source/kernels_without.cpp || { echo "the emitted update has no flag" >&2; exit 1; }
march=$(sed -n 's/^set(MARCH "\([^"]*\)".*/\1/p' gpt/source/CMakeLists.txt)
for name in kernels kernels_without; do
  g++ -std=c++20 -O3 -march="$march" -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp -w -Igpt/source \
    -c gpt/source/$name.cpp -o $name.o
  g++ -std=c++20 -O1 -w -fopenmp -Igpt/source "$tree/tests/bench/update_time.cpp" gpt/source/{step,trainer,constants}.cpp $name.o \
    -Wl,--start-group "$bin/../lib/"libtrainc_{runtime,cpu}.a -Wl,--end-group -ldnnl -ldl -o time_$name
done
for ((pair = 0; pair < pairs; pair++)); do
  per flag "$(./time_kernels)" "$(./time_kernels_without)" 1
done

# nanoseconds on a core, of each thread
for ((pair = 0; pair < (pairs + 1) / 2; pair++)); do
  mpirun -n 2 gpt/trainer train --tokens text.bin --steps 1000000 --no-progress --run watched --overwrite --no-checkpoints >out.txt 2>&1 &
  launcher=$!
  until [ "$(grep -c loss watched/log.jsonl 2>/dev/null)" -gt 3 ] 2>/dev/null; do sleep 0.2; done
  sleep 5
  for rank in $(pgrep -P $launcher -x trainer); do
    for task in "/proc/$rank/task/"*; do
      echo "$(cut -d' ' -f1 "$task/schedstat") $(cat "$task/comm")"
    done | awk '{ total += $1 } $2 == "watchdog" { own += $1 } END { print own / total }' >>watchdog.samples
  done
  kill -TERM $(pgrep -P $launcher -x trainer)
  wait $launcher || true
done

awk -v step="$(median step)" -v checkpoint="$(median checkpoint)" -v flag="$(median flag)" -v small="$(median small)" \
  -v watchdog="$(median watchdog)" '
  function row(name, seconds, share, note) {
    printf "%-24s %12.6f s   %8.4f %%  %s\n", name, seconds, 100 * share, note
    if (note == "" && share > 0.01) bad = 1
  }
  BEGIN {
    printf "%-24s %12.6f s\n", "step", step
    row("watchdog", watchdog * step, watchdog, "")
    row("checkpoint, 10 minutes", checkpoint, checkpoint / 600, "")
    row("checkpoint, 50 steps", checkpoint, checkpoint / 50 / step, "of those 50; not the default")
    row("non-finite flag", flag, flag / step, "")
    row("log and loop, at most", small, small / step, "")
    exit bad
  }'
