// SPDX-License-Identifier: Apache-2.0
//
// What tests/bench/exchange.sh runs under mpirun: the trainer's own sums of gradients, and plain
// copies of the same bytes by all ranks at the same time, in turns.
//
//   exchange ELEMENTS MICRO_BATCHES ROUNDS shared|messages
#include "runtime/cpu/ranks/gradient_sum.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

using namespace trainc;

namespace {

double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Best time of all ranks together for `work`, which all begin at once.
template <typename Work> void measure(communicator &ranks, double &best, const Work &work) {
  ranks.barrier();
  const double start = seconds();
  work();
  ranks.barrier();
  best = std::min(best, seconds() - start);
}

} // namespace

int main(int count, char **arguments) {
  if (count != 5)
    return 2;
  const int64_t elements = atoll(arguments[1]), micro_batches = atoll(arguments[2]);
  const int rounds = atoi(arguments[3]);
  const bool shared = !strcmp(arguments[4], "shared");
  communicator ranks;
  arena_set memory;
  gradient_request request = {};
  request.type = data_type::f32;
  request.arena_bytes = request.reduced_bytes = elements * 4;
  request.micro_batches = micro_batches;
  request.layout = {ranks.rank(), ranks.size()};
  request.kind = shared ? communication_kind::shared_memory : communication_kind::messages;
  gradient_sum sum(ranks, memory, request);
  char *from = memory.allocate(elements * 4), *to = memory.allocate(elements * 4);
  double copy = 1e9, exchange = 1e9, own = 1e9;
  for (int round = 0; round < rounds; ++round) {
    measure(ranks, copy, [&] { memcpy(to, from, static_cast<size_t>(elements) * 4); });
    double before = 0; // what a rank adds by itself
    for (int64_t j = 0; j < micro_batches - 1; ++j) {
      double time = 1e9;
      measure(ranks, time, [&] { sum.add(j); });
      before += time;
    }
    measure(ranks, exchange, [&] {
      sum.add(micro_batches - 1);
      sum.exchange();
    });
    own = std::min(own, before);
  }
  if (ranks.rank() == 0)
    printf("%-9s %3d ranks %3lld micro-batches: copy %7.1f ms, exchange %7.1f ms (%.2f copies), "
           "sums before it "
           "%7.1f ms\n",
           arguments[4], ranks.size(), static_cast<long long>(micro_batches), copy * 1e3,
           exchange * 1e3, exchange / copy, own * 1e3);
}
