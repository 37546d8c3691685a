// SPDX-License-Identifier: Apache-2.0
//
// What the stages of a pipeline do in a step, decided by the compiler: functions, tensors that go
// from one to another, and a list of actions for each. A rank interprets the list of its stage.
#pragma once

#include "runtime/element_range.h"

#include <cstdint>

namespace trainc {

struct arenas;

enum class stage_action_kind {
  forward, // of a micro-batch, into its slot of the stash
  backward,
  send_activation, // from the slot to a place at the receiver; waits until that is free
  receive_activation,
  send_gradient, // from the activations arena
  receive_gradient,
  reduce, // the stage's gradients, over its replicas
  update,
};

// What does not apply is -1.
struct stage_action {
  stage_action_kind kind;
  int micro_batch; // of the replica
  int slot;        // of the stash
  int boundary;    // of a message
  int place;       // of a message, at the receiver
};

// A tensor that one stage makes and another reads: byte offsets, of activations in a slot of
// either's stash, of gradients in the activations arena.
struct crossing_tensor {
  const char *name;
  int64_t from, to, bytes;
};

struct stage_boundary {
  int from, to; // stages; gradients go back
  const crossing_tensor *activations;
  int64_t activation_count;
  const crossing_tensor *gradients;
  int64_t gradient_count;
  int activation_places, gradient_places; // for messages, at the receiver
};

// An input of the program that a stage reads, and where in a slot of its stash.
struct stage_input {
  int64_t number, offset;
};

struct stage_program {
  void (*forward)(const arenas &);
  void (*backward)(const arenas &); // overwrites its part of the gradients arena
  int64_t activation_bytes;         // of the arena, for these two functions and `evaluate`
  int64_t slot_bytes;
  int slots; // of the stash: micro-batches that are on their way through the stage at once
  const stage_input *inputs;
  int64_t input_count;
  const element_range *gradients; // that `backward` writes, ascending, in elements
  int64_t gradient_count;
  const stage_action *actions;
  int64_t action_count;
};

struct pipeline {
  int stages;
  int64_t micro_batches; // of a step and replica
  const char *schedule;
  const stage_program *programs; // by stage
  const stage_boundary *boundaries;
  int64_t boundary_count;
  // Where `forward` of one stage leaves what it says of a micro-batch, in its slot.
  int loss_stage;
  int64_t loss_offset = 0, loss_weight_offset = 0, index_check_offset = 0;
};

} // namespace trainc
