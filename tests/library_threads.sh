#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Libraries of two models in four threads under sanitizers, 1,000 steps, and 100 instances made and
# destroyed: no report, the bits of an instance alone. The long form of tests/train/library/threads.test,
# some ten minutes; the libraries are built from the emitted folders, with the runtime, by CMake.
#
#   tests/library_threads.sh [thread|address ...]     default: both
set -euo pipefail
kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(thread address)
set -- # the first argument would be a folder for harness.sh
. "$(dirname "$0")/train/harness.sh"
export OMP_NUM_THREADS=1 # ThreadSanitizer does not see libgomp's barriers
for kind in "${kinds[@]}"; do
  flags="-fsanitize=$kind -g"
  [ "$kind" = thread ] || flags+=" -fsanitize=undefined -fno-sanitize-recover=undefined"
  for fixture in gpt2_dynamo20 cnn_script11; do
    say "building $fixture with $flags"
    compile $fixture $fixture --library --source-only --march x86-64-v3
    quietly cmake -S $fixture/source -B "$fixture-$kind" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS="$flags"
    quietly cmake --build "$fixture-$kind" -j2 --target $fixture
    cp $fixture/parameters.safetensors "$fixture-$kind/"
  done
  # shellcheck disable=SC2086
  "${CC:-cc}" $flags -std=gnu11 -I gpt2_dynamo20/source/library -I cnn_script11/source/library -o "threads-$kind" \
    "$tree/tests/train/library/threads.c" -L cnn_script11-$kind -lcnn_script11 -L gpt2_dynamo20-$kind -lgpt2_dynamo20 \
    -Wl,-rpath,"$PWD/cnn_script11-$kind:$PWD/gpt2_dynamo20-$kind" -pthread
  say "1000 steps, 100 instances with $kind"
  TSAN_OPTIONS=halt_on_error=1 setarch -R "./threads-$kind" 1000 100 # its maps want addresses as they were
done
say "no report"
