#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What only a GPU can show: every fixture's losses and bits, GPT-2 124M's products, kernels and
# tokens per second beside torch.compile, and compute-sanitizer.
#
#   tests/gpu.sh --prepare --scratch FOLDER [--build FOLDER] [--cuda-arch LIST] [--filter REGEX]
#   tests/gpu.sh --run --scratch FOLDER [--parts REGEX] [--results FOLDER] [--limit SECONDS] ...
#
# --prepare compiles all and runs the CPU trainers; it leaves FOLDER/payload.tar.xz of at most
# 40 MB. --run does the rest within 5 minutes, the most important first, on a machine that needs a
# GPU with its driver, CUDA's libraries with NCCL, and python3: no trainc, no MPI. tests/gpu/run.py
# says what it writes.
#
#   --build FOLDER    with trainc (build/release)
#   --cuda-arch LIST  compute capabilities (80,90,100)
#   --filter REGEX    these fixtures alone
#   --stand-in        for tests/stand_in, the emulator of a GPU, and without GPT-2 124M
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
place=
architectures=80,90,100
filter=.
what=
is_emulated=
rest=()
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=$(cd "$2" && pwd) && shift 2 ;;
  --scratch) mkdir -p "$2" && place=$(cd "$2" && pwd) && shift 2 ;;
  --cuda-arch) architectures=$2 && shift 2 ;;
  --filter) filter=$2 && shift 2 ;;
  --prepare) what=prepare && shift ;;
  --run) what=run && shift ;;
  --stand-in) is_emulated=yes && shift ;;
  *) rest+=("$1") && shift ;;
  esac
done
if [ -z "$what" ] || [ -z "$place" ] || { [ $what = prepare ] && [ ${#rest[@]} -gt 0 ]; }; then
  sed -n '3,19s/^# \?//p' "$0" >&2
  exit 2
fi
[ $what = prepare ] || exec python3 "$root/tests/gpu/run.py" "$place" "${rest[@]}"

# also in 16 bits, whose instructions the emulator replaces
narrow='^(mlp_relu_dynamo18|gpt2_dynamo20|nanogpt_dynamo20|resnet_script17_training)$'
[ -z "$is_emulated" ] || narrow='^mlp_relu_dynamo18$'
most_bytes=40000000 # of what travels to the machine
export TRAINC=$build/bin/trainc
if [ ! -x "$TRAINC" ] || [ ! -e "$build/lib/libtrainc_cuda.a" ]; then
  cmake --preset release -S "$root" && cmake --build "$build"
fi
# shellcheck source=train/cuda.sh
. "$root/tests/train/$([ -n "$is_emulated" ] && echo cuda || echo harness).sh" "$place/work"

# gpu_trainer FOLDER TO trainc...: what TO needs to train on the GPU
gpu_trainer() {
  local folder=$1 to=$2
  shift 2
  if [ -n "$is_emulated" ] && [ "$1" = compile ]; then
    compile_cuda "${@:2}"
  elif [ -n "$is_emulated" ]; then
    "$@" --target cuda --source-only
    build_cuda "$folder"
  else
    "$@" --target cuda --cuda-arch "$architectures"
  fi
  strip ${is_emulated:+-g} "$folder/trainer" # the emulator needs names
  mkdir -p "$to"
  mv "$folder/trainer" "$folder/parameters.safetensors" "$folder/plan" "$to"
  rm -rf "$folder"
}

prepare_fixture() { # NAME [PRECISION]
  local name=$1${2:+-$2} precision=(--precision "${2:-f32}")
  echo "compiling $name"
  compile "$1" cpu "${precision[@]}"
  train cpu 20 --learning-rate 1e-3 --weight-decay 0.01 --no-checkpoints --run run
  mkdir -p payload/losses
  mv run/log.jsonl "payload/losses/$name.jsonl"
  rm -rf cpu run
  gpu_trainer gpu "payload/fixtures/$name" compile "$1" gpu "${precision[@]}"
  rm -rf "payload/fixtures/$name/plan"
  printf '%s\n' "${inputs[@]#--data}" "labels=$data/$labels" | sed "/^$/d; s|$data/||" \
    >"payload/fixtures/$name/data.txt"
}

# The runtime's kernels alone: its unit tests.
prepare_kernels() {
  local tests=cuda_runtime_unit_tests
  if [ -z "$is_emulated" ]; then
    tests=cuda_runtime_tests_for_gpu
    quietly cmake --build "$build" --target $tests
  fi
  cp "$build/bin/$tests" payload/kernels
  strip ${is_emulated:+-g} payload/kernels
}

# The parameters are made where they are needed.
prepare_speed() { # MODEL PRECISION BATCH SEQUENCE VOCABULARY
  local to=payload/speed/$2-$3x$4
  echo "compiling $1 in $2, batch $3 x $4"
  gpu_trainer gpu "$to" quietly "$TRAINC" "$1" --dim "batch=$3" --dim "sequence=$4" --precision "$2" -o gpu
  python3 "$root/tests/gpu/parameters.py" header "$to/parameters.safetensors"
  printf '{"precision": "%s", "batch": %d, "sequence": %d, "vocabulary": %d}\n' "${@:2}" >"$to/settings.json"
}

for expected in "$TRAINC_MODELS"/expected/*_*.json; do
  name=$(basename "$expected" .json)
  if [ -e "$TRAINC_MODELS/$name.onnx" ] && [[ $name =~ $filter ]]; then
    prepare_fixture "$name"
    for precision in bf16 fp16; do
      [[ ! $name =~ $narrow ]] || prepare_fixture "$name" $precision
    done
  fi
done
prepare_kernels
mkdir payload/data
cp "$data"/*.npy payload/data
if [ -n "$is_emulated" ]; then
  prepare_speed "$TRAINC_MODELS/gpt2_dynamo20.onnx" f32 4 16 64
else
  "$TRAINC_FILL" "$TRAINC_MODELS/graphs/gpt2_12.onnx" -o gpt2.onnx
  prepare_speed gpt2.onnx f32 8 1024 50257
  prepare_speed gpt2.onnx bf16 8 1024 50257
  prepare_speed gpt2.onnx bf16 64 1024 50257
  # of this host, for a machine without them
  mkdir payload/libraries
  ldd payload/speed/bf16-8x1024/trainer | sed -nE 's/.* => (.*lib(gomp|stdc\+\+|gcc_s)\.so[.0-9]*) .*/\1/p' |
    xargs cp -Lt payload/libraries
fi
cd "$place"
# trainers have most of their bytes in common
XZ_OPT="-T1 --lzma2=preset=3,dict=64MiB" tar -C work -cJf payload.tar.xz payload
rm -rf work
bytes=$(stat -c %s payload.tar.xz)
echo "$place/payload.tar.xz: $bytes bytes"
[ "$bytes" -le $most_bytes ] || {
  echo "gpu.sh: the payload has $bytes bytes, more than $most_bytes" >&2
  echo "  try: fewer architectures, --cuda-arch 90" >&2
  exit 1
}
