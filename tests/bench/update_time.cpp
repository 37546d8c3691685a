// SPDX-License-Identifier: Apache-2.0
//
// Processor seconds of a program's update, of the fastest of several calls: linked with the sources
// that trainc emits (run_overhead.sh).
#include "runtime/arena.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace {

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Of a step that is applied, whose loss and gradient are 1e-3 everywhere.
void set_up(const trainc::program &program, const trainc::arenas &places) {
  using namespace trainc;
  auto set = [&](int64_t offset, double value) {
    memcpy(places[arena_kind::workspace] + offset, &value, sizeof value);
  };
  set(program.learning_rate_offset, 1e-3);
  set(program.step_offset, 1);
  for (int64_t offset :
       {program.clip_norm_offset, program.clip_value_offset, program.loss_limit_offset})
    set(offset, INFINITY);
  for (const hyperparameter &value : program.hyperparameters)
    set(value.offset, value.default_value);
  for (arena_kind kind : {arena_kind::parameters, arena_kind::gradients}) {
    auto *values = reinterpret_cast<float *>(places[kind]);
    std::fill_n(values, program.arena_bytes[static_cast<int>(kind)] / int64_t{sizeof(float)},
                1e-3f);
  }
  const float totals[] = {1, 1, 0}; // weight, loss, fault
  memcpy(places[arena_kind::gradients] + program.step_totals.offset, totals, sizeof totals);
}

} // namespace

int main() {
  using namespace trainc;
  arena_set memory;
  memory.places.constants = static_cast<const char *>(trainer_program.constants);
  for (arena_kind kind : {arena_kind::parameters, arena_kind::optimizer_state,
                          arena_kind::gradients, arena_kind::activations, arena_kind::workspace})
    memory.allocate(kind, trainer_program.arena_bytes[static_cast<int>(kind)]);
  set_up(trainer_program, memory.places);
  double best = INFINITY;
  for (int i = 0; i < 200; ++i) {
    double begin = processor_seconds();
    call(trainer_program, entry::update, memory.places);
    best = std::min(best, processor_seconds() - begin);
  }
  printf("%.9f\n", best);
}
