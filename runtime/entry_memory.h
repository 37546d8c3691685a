// SPDX-License-Identifier: Apache-2.0
//
// What the steps of an emitted entry function are given: the arenas, in which memory.h places each
// tensor, and those who are told of a step.
#pragma once

#include "runtime/gradient_exchange.h"
#include "runtime/program.h"
#include "runtime/step_clock.h"

namespace trainc {

// Where a tensor of elements T lies, in bytes from the base of its arena.
template <typename T, arena_kind Arena> struct place_in {
  int64_t offset;
  constexpr place_in(int64_t offset) : offset(offset) {}
};
template <typename T> using in_parameters = place_in<T, arena_kind::parameters>;
template <typename T> using in_gradients = place_in<T, arena_kind::gradients>;
template <typename T> using in_optimizer_state = place_in<T, arena_kind::optimizer_state>;
template <typename T> using in_activations = place_in<T, arena_kind::activations>;
template <typename T> using in_workspace = place_in<T, arena_kind::workspace>;
template <typename T> using in_stash = place_in<T, arena_kind::stash>;
template <typename T> using in_frozen = place_in<const T, arena_kind::frozen>;
template <typename T> struct in_constants {
  int64_t offset;
  constexpr in_constants(int64_t offset) : offset(offset) {}
};

class entry_memory : public arenas {
public:
  entry_memory(const arenas &memory, const char *function) : arenas(memory) {
    if (clock)
      clock->enter(function);
  }

  template <typename T, arena_kind Arena> T *operator[](const place_in<T, Arena> &place) const {
    return reinterpret_cast<T *>(base[static_cast<int>(Arena)] + place.offset);
  }
  template <typename T> const T *operator[](const in_constants<T> &place) const {
    return reinterpret_cast<const T *>(constants + place.offset);
  }
  char *scratch(int64_t offset) const {
    return base[static_cast<int>(arena_kind::workspace)] + offset;
  }

  // The step of this number in the plan begins.
  void step(int number) const {
    if (clock)
      clock->begin(number);
  }
  // What follows is not of a step.
  void leave() const {
    if (clock)
      clock->leave();
  }
  // The gradients of this bucket are whole.
  void complete(int bucket) const {
    leave();
    if (exchange)
      exchange->complete(bucket);
  }
};

} // namespace trainc
