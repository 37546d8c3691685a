#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# layouts.sh [FIXTURE...]: a run that goes on in another layout of ranks, stages, schedules and shards every second
# step, fourteen pairs of them: each checkpoint has the bits of one rank's, parameters and optimizer state, and so have losses and norms of
# the whole run. By hand; stages.test has a selection.
fixtures=("$@")
set --
. "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
. "$tree/tests/train/same_as_one_rank.sh"

micro_batches=8 each=2
# what it is called, ranks, and options of trainc or, after --, of the trainer
layouts=(
  "one 1 --"
  "replicas 2 --"
  "sharded 2 -- --shard optimizer"
  "stages 2 --stages 2 --schedule 1f1b --micro-batches 8"
  "four 4 --stages 4 --schedule gpipe --micro-batches 8 --recompute full"
  "both 4 --stages 2 --schedule 1f1b --micro-batches 4"
  "chunks 2 --stages 2 --schedule interleaved --micro-batches 8"
  "split 4 --stages 4 --schedule zb-h1 --micro-batches 8"
  "parts 4 --stages 2 --schedule 1f1b --micro-batches 4 --shard gradients"
)
# each number a layout of the list: fourteen steps from one to another, no pair twice
walk=(0 1 2 3 0 4 1 5 2 6 3 7 0 8 1)

for fixture in "${fixtures[@]:-gpt2_dynamo20 resnet_script17_training}"; do
  for one in $fixture; do
    say "$one: one rank"
    one_rank "$one" $((each * ${#walk[@]})) $micro_batches
    step=0
    rm -rf "$one-moved"
    for number in "${walk[@]}"; do
      read -r name ranks words <<<"${layouts[number]}"
      compiled=() trained=()
      [[ $words == --\ * || $words == -- ]] && read -ra trained <<<"${words#--}" || read -ra compiled <<<"$words"
      if [ ! -e "$one-$name-out" ]; then
        recipe "$one"
        dimensions=("${dimensions[@]/batch=*/batch=2}")
        quietly "$TRAINC" "$TRAINC_MODELS/$one.onnx" "${dimensions[@]}" --loss "$loss" "${compiled[@]}" -o "$one-$name-out"
      fi
      step=$((step + each))
      options=("${trained[@]}")
      [ ${#compiled[@]} -gt 0 ] || options+=(--micro-batches $((micro_batches / ranks)))
      [ $step = $each ] || options+=(--resume latest)
      train_steps "$one-moved" "$one-$name-out" $step mpirun -n "$ranks" -- "${options[@]}"
      train_steps "$one-until-$step" "$one-one-out" $step -- --micro-batches $micro_batches
      "$TRAINC_COMPARE" bits "$(newest "$one-until-$step")" "$(newest "$one-moved")"
      say "step $step, $name: the same bits"
    done
    same_run "$one-one" "$one-moved"
    say "$one: the same losses and norms"
  done
done
