# SPDX-License-Identifier: Apache-2.0
#
# What tests of libraries share, after harness.sh: a program that trains through a library beside the trainer.

quietly "${CC:-cc}" -std=gnu11 -O1 -Wall -Wextra -Werror -I "$tree" -o caller "$tree/tests/train/library/caller.c" -ldl

cat >same.py <<'PYTHON'
# same.py LOG OUTPUT FIRST: steps of a run's log, from FIRST on, and those that the caller printed
import json, sys
log = [json.loads(line) for line in open(sys.argv[1])]
trainer = [(line["step"], line["loss"], line["gradient_norm"]) for line in log if "loss" in line]
caller = [line.split() for line in open(sys.argv[2])]
caller = [(int(line[1]), float(line[2]), float(line[3])) for line in caller if line[0] == "step"]
trainer = [line for line in trainer if line[0] >= int(sys.argv[3])]
assert caller and trainer == caller, (trainer, caller)
PYTHON

# compile_library FIXTURE [trainc options]: trainer and library of a fixture in out; sets `called`, the
# words before actions of the caller on the fixture's data
compile_library() {
  compile "$1" out --library "${@:2}"
  local words=("${inputs[@]}" --data "labels=$data/$labels") word
  called=(./caller "$PWD/out/library/libmodel_$1.so" "model_$1")
  for word in "${words[@]}"; do
    [ "$word" = --data ] || called+=("data:$word")
  done
}

# adds_alike FIXTURE MICRO_BATCHES [trainc options]: steps of several micro-batches
adds_alike() {
  say "$1 with $2 micro-batches ${*:3}"
  compile_library "$1" "${@:3}"
  steps_alike "$2"
}

# steps_alike MICRO_BATCHES: of the library in out
steps_alike() {
  train out 3 --weight-decay 0.01 --learning-rate 2e-3 --run whole --micro-batches "$1" --seed 7
  quietly "${called[@]}" "create=1,7,$1" set:learning_rate=2e-3 set:weight_decay=0.01 steps=3 save=own
  python3 same.py whole/log.jsonl last-output.txt 1
  "$TRAINC_COMPARE" bits whole/checkpoints/step-00000003 own/step-00000003
  rm -rf whole own out
}

# trains_alike FIXTURE [trainc options]: four steps by the library and two more by the trainer from its
# checkpoint, and the other way, are six of one of them, bit by bit
trains_alike() {
  say "$1 ${*:2}"
  compile_library "$@"
  train out 6 --weight-decay 0.01 --learning-rate 2e-3 --run whole --checkpoint-every 4steps
  local sets=(set:learning_rate=2e-3 set:weight_decay=0.01)
  quietly "${called[@]}" create=1,0,1 "${sets[@]}" steps=4 flat=all save=own steps=2 save=own
  cp last-output.txt own.txt
  python3 same.py whole/log.jsonl own.txt 1
  "$TRAINC_COMPARE" bits whole/checkpoints/step-00000006 own/step-00000006
  quietly "${called[@]}" create=1,0,1 "${sets[@]}" load=whole/checkpoints/step-00000004 from=4 steps=2 save=more
  cp last-output.txt more.txt
  python3 same.py whole/log.jsonl more.txt 5
  "$TRAINC_COMPARE" bits whole/checkpoints/step-00000006 more/step-00000006
  quietly out/trainer export --checkpoint own/step-00000006 -o theirs.onnx
  quietly "${called[@]}" create=1,0,1 load=own/step-00000006 export=ours.onnx
  cmp ours.onnx theirs.onnx
  rm -rf whole own more out
}
