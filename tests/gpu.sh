#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What only a GPU can show: every fixture's CUDA trainer against the CPU target, the
# smallest one and one with attention under compute-sanitizer, and the speed of GPT-2 124M.
#
#   tests/gpu.sh [--build FOLDER] [--scratch FOLDER] [--steps N] [--cuda-arch LIST]
#   tests/gpu.sh --prepare | --run --scratch FOLDER ...
#
# --prepare compiles all and runs the CPU trainers; --run does the rest, on a machine that
# needs a GPU, CUDA's libraries, MPI and python3, but no trainc. Without either, both.
# Prints one line per check and ends with `N passed, N failed`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
scratch=
steps=30
what=both
architectures=80,90,100
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=$(cd "$2" && pwd) && shift 2 ;;
  --scratch) scratch=$2 && shift 2 ;;
  --steps) steps=$2 && shift 2 ;;
  --cuda-arch) architectures=$2 && shift 2 ;;
  --prepare) what=prepare && shift ;;
  --run) what=run && shift ;;
  *) sed -n '3,13s/^# \?//p' "$0" && exit 2 ;;
  esac
done
if [ -z "$scratch" ]; then
  [ $what = both ] || { echo "gpu.sh: --$what needs --scratch FOLDER" >&2 && exit 2; }
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
fi
export TRAINC=$build/bin/trainc TRAINC_COMPARE=${TRAINC_COMPARE:-$build/bin/trainc-compare}
fixtures=("$root"/tests/models/expected/*.json)

prepare() {
  if [ ! -x "$TRAINC" ] || [ ! -x "$TRAINC_COMPARE" ] || [ ! -e "$build/lib/libtrainc_cuda.a" ]; then
    cmake --preset release -S "$root" && cmake --build "$root/build/release"
  fi
  # shellcheck source=train/harness.sh
  . "$root/tests/train/harness.sh" "$scratch"
  for expected in "${fixtures[@]}"; do
    local fixture
    fixture=$(basename "$expected" .json)
    echo "compiling $fixture"
    compile "$fixture" cpu
    train cpu 20 --learning-rate 1e-3 --weight-decay 0.01 --no-checkpoints --run "$fixture-cpu"
    rm -rf cpu
    compile "$fixture" "$fixture" --target cuda --cuda-arch "$architectures"
    rm -rf "$fixture/source"
    printf '%s\n' "${inputs[@]#--data}" "labels=$data/$labels" | sed "/^$/d; s|$data/||" >"$fixture/data.txt"
  done
  cp -r "$data" data
  cp "$TRAINC_COMPARE" .
  "$(dirname "$TRAINC")/trainc-fill" "$root/tests/models/graphs/gpt2_12.onnx" -o gpt2.onnx
  local precision
  for precision in f32 bf16; do
    echo "compiling GPT-2 124M in $precision"
    quietly "$TRAINC" gpt2.onnx --dim batch=8 --dim sequence=1024 --target cuda \
      --precision $precision --cuda-arch "$architectures" -o gpt2-$precision
    rm -rf gpt2-$precision/source
  done
  rm -rf gpt2.onnx gpt2.onnx.data
}

passed=0
failed=0
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >last.txt 2>&1; then
    passed=$((passed + 1)) && echo "ok      $name"
  else
    failed=$((failed + 1)) && echo "FAILED  $name" && sed 's/^/        /' last.txt | tail -20
  fi
}

train_fixture() { # FIXTURE NAME LAUNCHER...: 20 steps
  local fixture=$1 name=$2 files=()
  shift 2
  while read -r file; do files+=(--data "${file%%=*}=data/${file#*=}"); done <"$fixture/data.txt"
  "$@" "$fixture/trainer" train "${files[@]}" --steps 20 --no-shuffle --no-progress \
    --learning-rate 1e-3 --weight-decay 0.01 --run "$fixture/$name"
}

same_losses() { ./trainc-compare losses "$1/first/log.jsonl" "$1-cpu/log.jsonl" --tolerance 1e-5; }
same_bits() { ./trainc-compare bits "$1/first/checkpoints/step-00000020" "$1/again/checkpoints/step-00000020"; }

# The floor of a step: what the products need at the peak rate of their multiply-adds.
speed() { # PRECISION MATH PEAK_TFLOPS
  python3 - "$1" "$2" "$3" "$steps" <<'PYTHON'
import json, os, subprocess, sys
precision, math, peak, steps = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
batch, sequence, parameters = 8, 1024, 124_439_808
layers, width = 12, 768
with open("tokens.bin", "wb") as file:
    file.write(os.urandom(4 * batch * sequence * (steps + 2)))
subprocess.run([f"gpt2-{precision}/trainer", "train", "--tokens", "tokens.bin", "--token-type", "u8", "--steps", str(steps), "--math", math,
                "--no-progress", "--no-checkpoints", "--run", "speed", "--overwrite"], check=True,
               stdout=subprocess.DEVNULL)
rows = [json.loads(line) for line in open("speed/log.jsonl")]
times = sorted(row["milliseconds"] for row in rows if row.get("step", 0) > 5)
median = times[len(times) // 2]
tokens = batch * sequence
flops = 6 * parameters * tokens + 12 * layers * width * sequence * tokens
floor = flops / peak / 1e9
print(f"GPT-2 124M, {precision}, --math {math}, batch {batch} x {sequence}: {median:.2f} ms per step, "
      f"{tokens / median * 1000:.0f} tokens/s, {floor / median:.1%} of the floor of {floor:.1f} ms "
      f"({flops / 1e12:.1f} TFLOP at {peak} TFLOP/s)")
PYTHON
}

run_all() {
  cd "$scratch"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader ||
    { echo "gpu.sh: no GPU is visible here" >&2 && exit 1; }
  for expected in "${fixtures[@]}"; do
    local fixture
    fixture=$(basename "$expected" .json)
    rm -rf "$fixture/first" "$fixture/again"
    check "$fixture: 20 steps" train_fixture "$fixture" first
    check "$fixture: losses of the CPU target within 1e-5" same_losses "$fixture"
    check "$fixture: again" train_fixture "$fixture" again
    check "$fixture: the same bits" same_bits "$fixture"
  done
  if command -v compute-sanitizer >/dev/null; then
    for fixture in mlp_relu_dynamo18 gpt2_dynamo20; do # the second one has attention
      for tool in memcheck racecheck synccheck initcheck; do
        check "$fixture: compute-sanitizer $tool" train_fixture $fixture $tool \
          compute-sanitizer --tool $tool --error-exitcode 9
      done
    done
  else
    echo "skipped compute-sanitizer: not on PATH"
  fi
  # H200: 67 TFLOP/s f32, 494 TFLOP/s TF32, 989 TFLOP/s bf16, dense
  speed f32 ieee 67 || failed=$((failed + 1))
  speed f32 tf32 494 || failed=$((failed + 1))
  speed bf16 ieee 989 || failed=$((failed + 1))
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

case $what in
prepare) prepare ;;
run) run_all ;;
both) (prepare) && run_all ;;
esac
