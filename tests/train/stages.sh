#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# stages.sh [FIXTURE...]: the bits of steps in stages against those of one rank with the same
# micro-batches: {2, 4 stages} x {gpipe, 1f1b, interleaved, zb-h1} x {1, 2 replicas} x {none, full recomputation} x {gradients
# of the stage on each rank, sharded ones}, and of steps in one piece on {1, 2, 4 ranks} x {none, full} x {--shard none, optimizer,
# gradients}; losses, norms and checkpoints of 20 steps with 8 micro-batches. By hand; stages.test and sharded_gradients.test have a
# selection. FEWER=1 leaves out what --shard says nothing about.
fixtures=("$@")
set --
. "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
. "$tree/tests/train/same_as_one_rank.sh"

[ ${#fixtures[@]} -gt 0 ] || fixtures=(gpt2_dynamo20 resnet_script17_training)
for fixture in "${fixtures[@]}"; do
  one_rank "$fixture" 20 8
  for recompute in none full; do
    for shard in none optimizer gradients; do
      [ $shard != none ] || [ -z "${FEWER:-}" ] || continue
      [ $shard != gradients ] || words=(--shard gradients)
      [ $shard = gradients ] || words=()
      quietly "$TRAINC" "$TRAINC_MODELS/$fixture.onnx" "${dimensions[@]}" --loss "$loss" --recompute $recompute "${words[@]}" \
        -o "$fixture-whole-out"
      for ranks in 1 2 4; do
        run=$fixture-whole-$recompute-$shard-$ranks
        say "$run"
        train_steps "$run" "$fixture-whole-out" 20 mpirun -n $ranks -- --micro-batches $((8 / ranks)) --shard $shard
        same_run "$fixture-one" "$run"
      done
    done
  done
  for stages in 2 4; do
    for schedule in gpipe 1f1b interleaved zb-h1; do
      for recompute in none full; do
        for replicas in 1 2; do
          [ -n "${FEWER:-}" ] ||
            in_stages "$fixture" 20 $stages $schedule $((8 / replicas)) $replicas --recompute $recompute
          in_stages "$fixture" 20 $stages $schedule $((8 / replicas)) $replicas --recompute $recompute --shard gradients
        done
      done
    done
  done
done
