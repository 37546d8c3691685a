# SPDX-License-Identifier: Apache-2.0
#
# What tests of stages share, after harness.sh: a run on one rank, and the same in stages.

# make_trainer FOLDER MODEL OPTIONS...; a test of another target has another one, and other options to train
make_trainer() { make_once "$@"; }
training=(--threads 1)

# train_steps FOLDER OUTPUT STEPS [LAUNCHER...] -- [OPTIONS...]
train_steps() {
  local run=$1 folder=$2 steps=$3
  shift 3
  local launcher=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    launcher+=("$1")
    shift
  done
  shift
  quietly "${launcher[@]}" "$folder/trainer" train "${inputs[@]}" --data "labels=$data/$labels" --steps "$steps" \
    --learning-rate 1e-3 --weight-decay 0.01 --clip-norm 1 --seed 7 "${training[@]}" --no-progress --run "$run" "$@"
}

# one_rank FIXTURE STEPS MICRO_BATCHES: trains FIXTURE in one piece, as run `FIXTURE-one`
one_rank() {
  recipe "$1"
  dimensions=("${dimensions[@]/batch=*/batch=2}")
  make_trainer "$1-one-out" "$TRAINC_MODELS/$1.onnx" "${dimensions[@]}" --loss "$loss"
  train_steps "$1-one" "$1-one-out" "$2" -- --micro-batches "$3"
}

# in_stages FIXTURE STEPS STAGES SCHEDULE MICRO_BATCHES REPLICAS [trainc options]: the same in stages
in_stages() {
  local fixture=$1 steps=$2 stages=$3 schedule=$4 micro_batches=$5 replicas=$6
  shift 6
  local run=$fixture-$stages-$schedule-$replicas
  rm -rf "$run"
  say "$run $*"
  recipe "$fixture"
  dimensions=("${dimensions[@]/batch=*/batch=2}")
  make_trainer "$run-out" "$TRAINC_MODELS/$fixture.onnx" "${dimensions[@]}" --loss "$loss" --stages "$stages" \
    --schedule "$schedule" --micro-batches "$micro_batches" "$@"
  train_steps "$run" "$run-out" "$steps" mpirun -n $((stages * replicas)) --
  same_run "$fixture-one" "$run"
}

# same_run FOLDER FOLDER: losses and norms of every step, parameters and state of the last
same_run() {
  "$TRAINC_COMPARE" bits "$(newest "$1")" "$(newest "$2")"
  local run
  for run in "$1" "$2"; do
    sed -n 's/, "milliseconds".*//p' "$run/log.jsonl" >"$run.losses"
  done
  cmp "$1.losses" "$2.losses"
}
