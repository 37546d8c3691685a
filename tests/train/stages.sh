#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# stages.sh [FIXTURE...]: the bits of steps in stages against those of one rank with the same
# micro-batches: {2, 4 stages} x {gpipe, 1f1b, interleaved, zb-h1} x {1, 2 replicas} x {none, full recomputation}, losses,
# norms and checkpoints of 20 steps with 8 micro-batches. By hand; stages.test has a selection.
fixtures=("$@")
set --
. "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
. "$tree/tests/train/same_as_one_rank.sh"

[ ${#fixtures[@]} -gt 0 ] || fixtures=(gpt2_dynamo20 resnet_script17_training)
for fixture in "${fixtures[@]}"; do
  one_rank "$fixture" 20 8
  for stages in 2 4; do
    for schedule in gpipe 1f1b interleaved zb-h1; do
      for recompute in none full; do
        for replicas in 1 2; do
          in_stages "$fixture" 20 $stages $schedule $((8 / replicas)) $replicas --recompute $recompute
        done
      done
    done
  done
done
