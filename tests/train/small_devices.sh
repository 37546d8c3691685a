# SPDX-License-Identifier: Apache-2.0
#
# What the tests of libraries for small devices share, after harness.sh and library.sh. Each of them compiles the whole
# runtime, so a run of the suite has small_devices_alone and one of the others in full, LONG=1 all.
part=${test_name#small_devices_}
[[ $'\n'alone$'\n'$(sample 1 models here source)$'\n' = *$'\n'$part$'\n'* ]] || {
  say "left to another commit, or LONG=1"
  exit 0
}
triple=aarch64-linux-gnu
$triple-gcc -O2 -shared -fPIC -o allocations.so "$tree/tests/train/count_allocations.c"
quietly $triple-gcc -std=gnu11 -O1 -Wall -Wextra -Werror -I "$tree" -o caller64 "$tree/tests/train/library/caller.c" -ldl

cat >close.py <<'PYTHON'
# close.py LOG OUTPUT: losses of a run's log and of a caller, apart by at most 1e-5 of them
import json, sys
log = [json.loads(line) for line in open(sys.argv[1])]
here = [line["loss"] for line in log if "loss" in line]
there = [float(line.split()[2]) for line in open(sys.argv[2]) if line.startswith("step")]
assert here and len(here) == len(there), (here, there)
apart = max(abs(a - b) / abs(a) for a, b in zip(here, there))
print(f"{apart:.1e}")
assert apart <= 1e-5, (here, there)
PYTHON

# only_libc LIBRARY.so: what the loader has to find
only_libc() {
  local needed
  needed=$($triple-readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^lib[cm]\.so\|^ld-linux' || true)
  [ -z "$needed" ] || fail "$1 needs $needed"
}

# trains_small FIXTURE MICRO_BATCHES [PROCESSOR]: as its trainer does, of another processor or "here"
trains_small() {
  say "$1 ${3:-}"
  local library=small/library/libmodel_$1.so word other=(--target-triple $triple)
  rm -rf small out whole
  compile "$1" out
  train out 5 --weight-decay 0.01 --learning-rate 2e-3 --run whole --micro-batches "$2" --no-checkpoints --seed 7
  [ -z "${3:-}" ] || other=()
  compile "$1" small --library=minimal "${other[@]}"
  only_libc "$library"
  called=(qemu-aarch64 -L /usr/$triple -E "LD_PRELOAD=$PWD/allocations.so" -E "ALLOCATIONS=$PWD/allocations"
    ./caller64 "$library" "model_$1")
  [ -z "${3:-}" ] || called=(./caller "$library" "model_$1")
  for word in "${inputs[@]}" --data "labels=$data/$labels"; do
    [ "$word" = --data ] || called+=("data:$word")
  done
  quietly "${called[@]}" "create=1,7,$2" values:2="${library%/*}/model_$1.parameters" values:3="${library%/*}/model_$1.buffers" \
    set:learning_rate=2e-3 set:weight_decay=0.01 steps=1 \
    restart=7 set:learning_rate=2e-3 set:weight_decay=0.01 steps=1 count=3
  python3 close.py whole/log.jsonl last-output.txt
  [ -z "${3:-}" ] || return 0
  xargs -a allocations.txt -d '\n' echo "$1: allocations" # how qemu itself grows says nothing
  grep -q '^before [1-9][0-9]' allocations.txt || fail "$1: allocations are not counted"
  grep -qx 'in steps 0' allocations.txt || fail "$1: memory was allocated in a step"
  rm allocations allocations.txt
  wc -c "$library"
}
