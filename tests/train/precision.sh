# SPDX-License-Identifier: Apache-2.0
#
# What tests of --precision share, after harness.sh: narrow floats beside f32 and f64, and the same bits.
. "$tree/tests/train/same_as_one_rank.sh"

cat >look.py <<'PYTHON'
import json, math, struct, sys

def losses(run):
    lines = [json.loads(line) for line in open(run + "/log.jsonl")]
    return [line["loss"] for line in lines if "loss" in line]

def tensors(path):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] in ("F32", "F64"):
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            code = {"F32": "f", "F64": "d"}[entry["dtype"]]
            yield name, struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", raw[begin:end])

def norm(values):
    return math.sqrt(math.fsum(value * value for value in values))

what, one, other = sys.argv[1:4]
if what == "losses":  # of the last ten steps in the mean
    ends = [math.fsum(losses(run)[-10:]) / 10 for run in (one, other)]
    print(*ends)
    assert abs(ends[0] / ends[1] - 1) < 0.01, ends
else:  # gradients, of narrow floats and of f64
    expected = dict(tensors(other))
    all_of = math.sqrt(math.fsum(norm(values) ** 2 for values in expected.values()))
    distance = math.sqrt(math.fsum((a - b) ** 2 for name, values in tensors(one)
                                   for a, b in zip(values, expected[name])))
    print("relative distance of all gradients:", distance / all_of)
    assert 1e-5 < distance / all_of < float(sys.argv[4]), (distance, all_of)
PYTHON

# trains PRECISION FIXTURE STEPS BOUND: losses beside those of f32, gradients beside those of f64
trains() {
  local precision
  say "$2"
  for precision in f32 "$1" f64; do
    compile "$2" $precision --optimizer adamw --precision $precision
    quietly $precision/trainer gradients "${inputs[@]}" --data "labels=$data/$labels" --checkpoint initial -o $precision.safetensors
  done
  for precision in f32 "$1"; do
    train $precision "$3" --learning-rate 1e-3 --no-checkpoints --run $precision-run --overwrite
  done
  python3 look.py losses "$1-run" f32-run
  python3 look.py gradients "$1.safetensors" f64.safetensors "$4"
}

# takes_less PRECISION: memory for activations than f32, of what was trained last
takes_less() {
  bytes_of() { sed -n 's/^activations  *\([0-9]*\) .*/\1/p' <(plan_of "$1" memory); }
  [ "$(($(bytes_of "$1") * 10))" -lt "$(($(bytes_of f32) * 9))" ] || fail "activations take as much as in f32"
}

# same_bits PRECISION FIXTURE: for other threads, ranks, stages, after a resume, recomputed; again with trainers
# that are there
same_bits() {
  precision=$1
  rm -rf three resumed ranks shared
  find . -maxdepth 1 -name "$2-*" ! -name '*-out' -exec rm -r {} +
  make_trainer() { [ -x "$1/trainer" ] || make_once "$@" --precision $precision; }
  one_rank "$2" 6 4
  training=(--threads 3)
  train_steps three "$2-one-out" 6 -- --micro-batches 4
  same_run "$2-one" three
  training=(--threads 1)
  train_steps ranks "$2-one-out" 6 mpirun -n 2 -- --micro-batches 2
  same_run "$2-one" ranks
  train_steps shared "$2-one-out" 6 mpirun -n 2 -- --micro-batches 2 --shard optimizer
  same_run "$2-one" shared
  train_steps resumed "$2-one-out" 3 -- --micro-batches 4
  train_steps resumed "$2-one-out" 6 -- --resume latest
  same_run "$2-one" resumed
  in_stages "$2" 6 2 1f1b 4 1
  in_stages "$2" 6 2 zb-h1 4 1 --recompute full
}
