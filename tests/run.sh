#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds trainc and runs every test. Installs what is missing first. The last
# line is `N passed, N failed`; the exit status is 0 only where none failed.
#
#   tests/run.sh [--preset dev|asan] [--filter REGEX]
set -uo pipefail
cd "$(dirname "$0")/.."

preset=dev
filter=.
while [ $# -gt 0 ]; do
  case $1 in
  --preset) preset=$2; shift 2 ;;
  --filter) filter=$2; shift 2 ;;
  *) echo "tests/run.sh: unknown argument '$1'; see the head of this file" >&2; exit 2 ;;
  esac
done

tools/setup.sh || exit 1
build=build/$preset
# A full tree where ccache helps, no less correct without.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
cmake --preset "$preset" >"$(mktemp)" || { cmake --preset "$preset"; exit 1; }
start=$SECONDS
cmake --build --preset "$preset" -- -k 0 || { echo "the build failed"; exit 1; }
echo "built in $((SECONDS - start)) s"

passed=0
failed=0
start=$SECONDS
for binary in "$build"/bin/*_unit_tests; do
  [ -x "$binary" ] || continue
  log=$(mktemp)
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$binary" --gtest_brief=1 >"$log" 2>&1
  status=$?
  ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?\.$/\1/p' "$log")
  bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests\?, listed below:$/\1/p' "$log")
  if [ $status -ne 0 ] && [ -z "$bad" ]; then bad=1; fi # crashed
  [ $status -ne 0 ] && cat "$log"
  passed=$((passed + ${ok:-0}))
  failed=$((failed + ${bad:-0}))
done

lit=$(llvm-config-19 --prefix)/build/utils/lit/lit.py
log=$(mktemp)
# One more than there are cores: many tests of runs that stall or die wait for most of their time.
python3 "$lit" -j"$(($(nproc) + 1))" -v --time-tests --filter "$filter" "$build/tests" 2>&1 | tee "$log" | grep -Ev '^PASS'
count() { sed -n "s/^ *$1 *: *\([0-9]*\).*/\1/p" "$log" | tail -1; }
passed=$((passed + $(count Passed || echo 0) + 0))
for kind in Failed 'Timed Out' 'Unexpectedly Passed' Unresolved; do
  n=$(count "$kind")
  failed=$((failed + ${n:-0}))
done
echo "tested in $((SECONDS - start)) s"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
