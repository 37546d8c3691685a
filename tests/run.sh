#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds trainc and runs every test. Installs what is missing first. Ends with the slowest tests and
# `N passed, N failed`; the exit status is 0 only where none failed. The seconds of each test are in build/PRESET/times.json.
#
#   tests/run.sh [--preset dev|asan] [--filter REGEX] [--quick]
#
# --quick: what tells in minutes whether a tree is sound: unit tests, passes, operations, and an end-to-end test of each kind.
set -uo pipefail
cd "$(dirname "$0")/.."

# End to end: fixtures, ranks, stages, checkpoints, data, micro-batches, CUDA's runtime, refusals.
quick='_unit_tests| (dialects|ops|passes)/.*\.mlir| train/(fixtures/(mlp_relu_dynamo18|fresh_gpt2_dynamo20)$'
quick+='|(ranks/(agreement|stages)|cuda/cuda_runtime_toy|runs/checkpoints|data/data_formats|data/leftovers|numbers/micro_batches|compile/refused_losses)\.test)'

preset=dev
filter=.
while [ $# -gt 0 ]; do
  case $1 in
  --preset) preset=$2; shift 2 ;;
  --filter) filter=$2; shift 2 ;;
  --quick) filter=$quick; shift ;;
  *) echo "tests/run.sh: unknown argument '$1'; see the head of this file" >&2; exit 2 ;;
  esac
done

tools/setup.sh || exit 1
build=build/$preset
# A full tree where ccache helps, no less correct without; another clone's objects are as good.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset "$preset" >"$(mktemp)" || { cmake --preset "$preset"; exit 1; }
start=$SECONDS
cmake --build --preset "$preset" -- -k 0 || { echo "the build failed"; exit 1; }
echo "built in $((SECONDS - start)) s"

start=$SECONDS
rm -rf "$build/tests/trainers" # of another build (tests/train/harness.sh)
lit=(python3 "$(llvm-config-19 --prefix)/build/utils/lit/lit.py" "$build/tests")
# One more than there are cores: tests of runs that stall or die wait for most of their time.
"${lit[@]}" -v -j"$(($(nproc) + 1))" --filter "$filter" -o "$build/results.json" 2>&1 |
  grep -Ev '^(PASS|processor_seconds:|\*{10}( TEST .* RESULTS \*{10})?$)'
echo "tested in $((SECONDS - start)) s"
python3 tests/report.py "$build/results.json" "$build/times.json" -- "${lit[@]}"
