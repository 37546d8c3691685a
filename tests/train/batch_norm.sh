# SPDX-License-Identifier: Apache-2.0
#
# What tests of models with batch norm share. Sourced after harness.sh.

# check_running_statistics FIXTURE: of the trainer in out, after the 20 steps of check_fixture, the
# running statistics and what the model predicts by them, against PyTorch in eval().
check_running_statistics() {
  train out 20 --learning-rate 1e-3 --weight-decay 0.01 --run statistics
  quietly out/trainer predict "${inputs[@]}" --run statistics -o predicted.safetensors
  compare_running_statistics statistics "$1" predicted.safetensors
}

# compare_running_statistics RUN FIXTURE PREDICTED: of a run of these 20 steps, and what was predicted by it
compare_running_statistics() {
  python3 - "$(newest "$1")" "$TRAINC_MODELS/expected/$2.json" "$3" <<'PYTHON'
import glob, json, struct, sys

def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, struct.unpack("<%df" % ((end - begin) // 4), data[8 + size + begin:8 + size + end])

def check(what, found, expected):
    worst = max(abs(a - b) / max(abs(b), 1e-2) for a, b in zip(found, expected))
    assert len(found) >= len(expected) and worst < 2e-5, (what, worst)

exact = json.load(open(sys.argv[2]))["runs"]["adamw"]["f64"]
found = {}
for path in glob.glob(sys.argv[1] + "/*.safetensors"):
    found.update(tensors(path))
for name, values in exact["buffers"].items():
    check(name, found[name], values)
(_, logits), = tensors(sys.argv[3])
last = [number for row in exact["prediction"] for number in row]
check("prediction", logits[-len(last):], last)
PYTHON
}
