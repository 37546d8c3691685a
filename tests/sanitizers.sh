#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests under sanitizers: address and undefined behaviour over the whole suite (build/asan), data races over the
# runtime's unit tests and jobs of two ranks (build/tsan). `runtime`: of the first no more than of the second, which
# needs no compiler.
#
#   tests/sanitizers.sh [address|runtime|thread]...
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
cd "$tree"
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(address thread)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TRAINC=$tree/build/none/bin/trainc

# runtime PRESET FILTER TESTS...: the unit tests, then end-to-end tests that need the toy trainer alone
runtime() {
  local preset=$1 filter=$2 test
  shift 2
  cmake --preset "$preset" >"$scratch/log" || { cat "$scratch/log"; return 1; }
  cmake --build --preset "$preset" --target runtime_unit_tests toy_trainer
  OMP_NUM_THREADS=1 "build/$preset/bin/runtime_unit_tests" --gtest_brief=1 --gtest_filter="$filter"
  for test in "$@"; do
    OMP_NUM_THREADS=1 TRAINC_TOY=$tree/build/$preset/bin/toy_trainer bash tests/train/*/"$test".test "$scratch/$test" >"$scratch/log" 2>&1 ||
      { cat "$scratch/log"; echo "$test: failed"; return 1; }
    echo "$test: passed"
  done
}

for part in "${parts[@]}"; do
  case $part in
  address)
    # MLIR's libraries are built without: they do not see what our side of their allocators marks.
    ASAN_OPTIONS=allow_user_poisoning=0 UBSAN_OPTIONS=halt_on_error=1 tests/run.sh --preset asan
    ;;
  runtime)
    # At the end of ranks Open MPI leaks.
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 runtime asan '*' checkpoints leftovers data_formats run_folder runtime_toy failing_ranks
    ;;
  thread)
    # The libraries are built without: what they do is not seen, nor the order that OpenMP's and MPI's make. So tests
    # with several threads of OpenMP are not among these: those of kernels, and of the sum of gradients.
    echo race:libmpi >"$scratch/suppressions"
    # Fatal signals are the trainer's own to report.
    TSAN_OPTIONS="exitcode=66 ignore_noninstrumented_modules=1 suppressions=$scratch/suppressions handle_segv=0 handle_sigbus=0
      handle_sigfpe=0 handle_sigill=0 handle_abort=0" \
      runtime tsan '-kernels_*:FlatSum.*' checkpoints run_folder failing_ranks
    ;;
  *) echo "tests/sanitizers.sh: no part '$part'; see the head of this file" >&2; exit 2 ;;
  esac
  echo "$part: passed"
done
