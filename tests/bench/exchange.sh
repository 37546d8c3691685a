#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The exchange of gradients on one host against plain copies of the same bytes by all ranks at once, in turns within a
# run: for the parameters of GPT-2 124M it should take at most 3 copies, for any number of micro-batches. The last
# micro-batch's own sums are part of the exchange; what ranks add before is printed besides. For a machine that does
# nothing else.
#
#   tests/bench/exchange.sh [ELEMENTS [ROUNDS]]      default 124439808 and 7
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
libraries=${TRAINC_LIBRARIES:-$tree/build/dev/lib}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
mpicxx -std=c++20 -O2 -fopenmp -I"$tree" "$tree/tests/bench/exchange.cpp" -o "$scratch/exchange" \
  -Wl,--start-group "$libraries/libtrainc_runtime.a" "$libraries/libtrainc_cpu.a" -Wl,--end-group -ldnnl -ldl
echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg)"
for transport in shared messages; do
  for micro_batches in 1 2 8; do
    mpirun -n 2 "$scratch/exchange" "${1:-124439808}" $micro_batches "${2:-7}" $transport
  done
done
