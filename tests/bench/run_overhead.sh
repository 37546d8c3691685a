#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the safety of a run costs: milliseconds of a step with and without the watchdog, checkpoints in the background
# and both, in turns so that the machine's moods fall on all alike. Prints the mean of each and its ratio to the bare
# one, which should be at most 1.01. For a machine that does nothing else.
#
#   tests/bench/run_overhead.sh [ROUNDS [STEPS]]      default 5 of 300
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
rounds=${1:-5} steps=${2:-300}
bin=$(dirname "${TRAINC:-$tree/build/release/bin/trainc}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg)"
find /usr/share/common-licenses -type f | LC_ALL=C sort | xargs cat >text.bin
"$bin/trainc-fill" "$tree/tests/models/graphs/bytes_4.onnx" -o gpt.onnx
"$bin/trainc" gpt.onnx --dim batch=8 --dim sequence=128 --loss cross_entropy --optimizer adamw --quiet -o gpt

# With a checkpoint every 50 steps, far more often than the default of ten minutes.
declare -A options=(
  [bare]="--no-checkpoints --hang-timeout 0"
  [watched]="--no-checkpoints --hang-timeout 60"
  [checkpoints]="--checkpoint-every 50 --keep 1 --hang-timeout 0"
  [all]="--checkpoint-every 50 --keep 1 --hang-timeout 60"
)
for ((round = 0; round < rounds; round++)); do
  for name in "${!options[@]}"; do
    mpirun -n 2 gpt/trainer train --tokens text.bin --steps "$steps" --no-progress --run "run-$name" --overwrite \
      ${options[$name]} >"$name.txt" 2>&1
    # the first steps find memory and threads cold
    sed -n '11,$s/.*"milliseconds": \([0-9.]*\).*/\1/p' "run-$name/log.jsonl" >>"$name.steps"
  done
done
# The mean, since a checkpoint stalls one step in many.
mean() { awk '{ sum += $1 } END { printf "%.3f", sum / NR }' "$1.steps"; }
bare=$(mean bare)
for name in bare watched checkpoints all; do
  awk -v name=$name -v mean="$(mean $name)" -v bare="$bare" \
    'BEGIN { printf "%-12s %9.3f ms  %.4f\n", name, mean, mean / bare }'
done
