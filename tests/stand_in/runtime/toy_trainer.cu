// SPDX-License-Identifier: Apache-2.0
//
// The hand-written program of the runtime's tests, each entry function run by one
// thread of the device: a whole CUDA trainer without the compiler.
#define trainer_program program_of_host
#include "tests/unit/toy_program.cpp"
#undef trainer_program

#include "runtime/cuda/launch.h"

namespace trainc {
namespace {

using entry_function = void (*)(const arenas &);

template <entry_function Entry> __global__ void run_entry(arenas places, char *) {
  if (threadIdx.x == 0)
    Entry(places);
}

template <entry_function Entry> void queue_entry(const arenas &places) {
  launch("entry function", run_entry<Entry>, {1, 32}, places,
         writes(places[arena_kind::parameters], unknown_extent));
}

program on_device(program changed) {
  changed.target = "cuda";
  changed.forward_backward = queue_entry<forward_backward>;
  changed.update = queue_entry<update>;
  changed.evaluate = queue_entry<evaluate>;
  return changed;
}

} // namespace

extern const program trainer_program;
const program trainer_program = on_device(program_of_host);

} // namespace trainc
