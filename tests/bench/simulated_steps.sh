#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What trainc-simulate says of a step in two stages, with costs of `trainer profile`, over what a step of training then
# takes, for each schedule: a GPT of 1.9 million parameters, a core for each stage. Profiles and runs alternate; the median
# of the ratios counts. Beside it the ratio to the steps that were profiled, which were taken at the same time: that holds
# on a machine that is busy with other things, too, where the first says how the load has changed. Ends with 1 where a
# ratio to training is not within 10 % of 1.
#
#   tests/bench/simulated_steps.sh [ROUNDS]      default 5
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
rounds=${1:-5}
steps=12
bin=$(dirname "${TRAINC:-$tree/build/release/bin/trainc}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg)"
find /usr/share/common-licenses -type f | LC_ALL=C sort | xargs cat >text.bin
"$bin/trainc-fill" "$tree/tests/models/graphs/bytes_4.onnx" -o gpt.onnx
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

status=0
for schedule in 1f1b gpipe interleaved zb-h1; do
  "$bin/trainc" gpt.onnx --dim batch=4 --dim sequence=128 --loss cross_entropy --stages 2 --micro-batches 8 \
    --schedule $schedule --quiet -o $schedule
  for ((round = 0; round < rounds; round++)); do
    mpirun -n 2 $schedule/trainer profile --tokens text.bin --steps $steps -o $schedule.json >profile.txt
    simulated=$("$bin/trainc-simulate" $schedule --profile $schedule.json --json | sed -n 's/^  "seconds": \([^,]*\),/\1/p')
    profiled=$(sed -n 's/^ "seconds": \([^,]*\),/\1/p' $schedule.json)
    mpirun -n 2 $schedule/trainer train --tokens text.bin --steps $steps --no-checkpoints --no-progress \
      --run $schedule-run --overwrite >train.txt
    trained=$(sed -n 's/.*"milliseconds": *\([0-9.e+-]*\).*/\1/p' $schedule-run/log.jsonl | tail -n +3 | # two warm up
      awk '{ sum += $1 } END { print sum / NR / 1000 }')
    awk "BEGIN { print $simulated / $trained }" >>$schedule.of-training
    awk "BEGIN { print $simulated / $profiled }" >>$schedule.of-profile
  done
  awk -v schedule=$schedule -v ratio="$(median $schedule.of-training)" -v same="$(median $schedule.of-profile)" 'BEGIN {
    printf "%-11s simulated over trained %.3f, over profiled %.3f\n", schedule, ratio, same
    exit ratio < 0.9 || ratio > 1.1 }' || status=1
done
exit $status
