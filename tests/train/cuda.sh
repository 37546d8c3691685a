# SPDX-License-Identifier: Apache-2.0
#
# What the tests of CUDA trainers share, on top of harness.sh: an emitted CUDA folder,
# built against the stand-in for a GPU (tests/stand_in), is a trainer that runs here.
. "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
: "${TRAINC_BUILD:=$(dirname "$(dirname "$TRAINC")")}"
stand_in_folder=$tree/tests/stand_in

if [ ! -f "$TRAINC_BUILD/lib/libtrainc_cuda_stand_in.a" ]; then
  echo "skipped: this build has no stand-in for a GPU (a build with sanitizers)"
  exit 0
fi

# host_object SOURCE.cpp FOLDER: compiles a file of the host beside its source
host_object() {
  quietly g++ -std=c++20 -O0 -Wall -Wextra -Werror -I "$2" -I "$stand_in_folder/include" -c "$1" \
    -o "${1%.*}.o"
}

# kernels get the instrumentation by which the stand-in sees every access; flags as tests/stand_in/README.md says
kernels_compiler=(g++ -std=c++20 -O1 -g1 -fsanitize=thread -fno-thread-jumps -Wall -Wextra -Werror
  -Wno-unknown-pragmas -Wno-tsan -I "$stand_in_folder/include")

# precompile: sets `precompiled`, a header with cuda_runtime.h, which nvcc includes first as well, of this compiler and
# these headers. All tests share it: to read what it has takes a third of the time of a trainer's kernels.
precompile() {
  local key
  key=$({ cat "$(g++ -print-prog-name=cc1plus)" "$stand_in_folder"/include/*.h "$stand_in_folder"/include/*/*.h
    echo "${kernels_compiler[@]}"; } | cksum)
  precompiled=$TRAINC_BUILD/tests/precompiled/${key// /-}.h
  [ ! -e "$precompiled.gch" ] || return 0
  mkdir -p "$TRAINC_BUILD/tests/precompiled"
  echo '#include <cuda_runtime.h>' >"$precompiled"
  quietly "${kernels_compiler[@]}" -x c++-header "$precompiled" -o "$precompiled.$$"
  mv "$precompiled.$$" "$precompiled.gch" # at once: other tests may run
}

# kernels_object SOURCE.cu FOLDER
kernels_object() {
  precompile
  quietly "${kernels_compiler[@]}" -x c++ -include "$precompiled" -Winvalid-pch -I "$2" -c "$1" -o "${1%.*}.o"
}

# link_cuda OUTPUT OBJECT...
link_cuda() {
  quietly mpicxx -fopenmp -rdynamic -o "$@" -Wl,--start-group \
    "$TRAINC_BUILD/lib/libtrainc_runtime.a" "$TRAINC_BUILD/lib/libtrainc_cuda_stand_in.a" \
    -Wl,--end-group -lboost_context -ldnnl -ldl
}

# build_cuda FOLDER: the trainer of FOLDER/source
build_cuda() {
  local file
  for file in "$1"/source/*.cpp; do
    host_object "$file" "$1/source"
  done
  kernels_object "$1/source/kernels.cu" "$1/source"
  link_cuda "$1/trainer" "$1"/source/*.o
}

# make_cuda FOLDER MODEL OPTION...: the trainer of a model; tests that ask for the same get copies of one, as of `make_once`
make_cuda() { kept_once run_trainc_for_cuda "$@"; }
run_trainc_for_cuda() {
  run_trainc "$@" --target cuda --source-only
  build_cuda "$1"
}

# compile_cuda FIXTURE FOLDER [trainc options]: the trainer of a fixture
compile_cuda() {
  recipe "$1"
  make_cuda "$2" "$TRAINC_MODELS/$1.onnx" "${dimensions[@]}" "${frozen[@]}" --loss "$loss" "${@:3}"
}

# stand_in WORDS COMMAND...: the command with these options of the stand-in
stand_in() {
  local words=$1
  shift
  TRAINC_STAND_IN=$words "$@"
}

# check_cuda_fixture FIXTURE, after check_fixture: 20 steps on the stand-in give the losses of
# the CPU target (its trainer is in out, its losses in run/log.jsonl), and
# the same bits in whatever order threads get their turn, run again, and with two ranks. LONG=1: all orders in place
# of a sample.
check_cuda_fixture() {
  local steps=20 two_steps=${LONG:+10} name
  local options=(--learning-rate 1e-3 --weight-decay 0.01)
  compile_cuda "$1" cuda
  run_order forward threads=forward
  for name in $(sample 1 {again,reverse,random}"-$1"); do
    name=${name%%-*}
    case $name in
    again) run_order again threads=forward ;;
    reverse) run_order reverse threads=reverse ;;
    random) run_order random threads=random:1,streams=late ;;
    esac
    same_bits forward "$name"
  done
  "$TRAINC_COMPARE" losses forward/log.jsonl run/log.jsonl --tolerance 1e-5
  # two ranks, which share the batches
  train_two out two-cpu
  stand_in threads=forward train_two cuda two-forward
  stand_in threads=reverse train_two cuda two-reverse
  "$TRAINC_COMPARE" losses two-forward/log.jsonl two-cpu/log.jsonl --tolerance 1e-5
  same_bits two-forward two-reverse
}

run_order() { # NAME WORDS
  stand_in "$2" train cuda $steps "${options[@]}" --run "$1"
}

train_two() { # FOLDER NAME
  quietly mpirun -n 2 "$1/trainer" train "${inputs[@]}" --data "labels=$data/$labels" --steps "${two_steps:-3}" \
    --no-shuffle --no-progress --learning-rate 1e-3 --weight-decay 0.01 --run "$2"
}

same_bits() { # of the last checkpoints of two folders
  say "$1 and $2"
  "$TRAINC_COMPARE" bits "$(newest "$1")" "$(newest "$2")"
}

# needed PAGES RANKS FOLDER OPTIONS...: bytes of arenas and accumulators, as the first rank says where there is too little
needed() {
  local pages=$1 ranks=$2 folder=$3
  shift 3
  TRAINC_STAND_IN=pages=$pages,memory=100000 refused 6 'not enough memory' -- mpirun -n "$ranks" "$folder/trainer" train \
    "${inputs[@]}" --data "labels=$data/$labels" --steps 1 --no-progress --run nothing "$@"
  sed -nE 's/.*\(arenas ([0-9.]+) ([KM]i)B.*accumulators ([0-9.]+) ([KM]i)B.*/\1\2 \3\4/p' refused.txt |
    numfmt --field=1-2 --from=iec-i
}
# below A B: two such pairs
below() {
  say "arenas and accumulators: $1 bytes, otherwise $2"
  awk -v a="$1" -v b="$2" 'BEGIN { split(a, x); split(b, y); exit !(x[1] > 0 && x[2] > 0 && x[1] < y[1] && x[2] <= y[2]) }' ||
    fail "$1 bytes of arenas and accumulators are not below $2"
}
