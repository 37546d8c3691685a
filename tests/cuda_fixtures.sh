#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# All exports of nanoGPT and GPT-2 on the stand-in for a GPU, in several orders of threads and with two ranks: the long
# form of those of tests/train/fixtures that do it, which are one for each graph. Some 20 minutes.
#
#   tests/cuda_fixtures.sh [FIXTURE...]
set -euo pipefail
cd "$(dirname "$0")/train"
fixtures=("$@")
[ ${#fixtures[@]} -gt 0 ] || mapfile -t fixtures < <(sed -nE 's/^((nanogpt|gpt2)_[a-z0-9_]+) .*/\1/p' fixtures/fixtures.table)
export LONG=1
set -- # the first argument would be a folder for harness.sh
for fixture in "${fixtures[@]}"; do
  echo "== $fixture"
  (
    . ./harness.sh
    check_fixture "$fixture"
    . "$tree/tests/train/cuda.sh"
    check_cuda_fixture "$fixture"
  ) >/dev/null
done
echo "${#fixtures[@]} fixtures passed"
