// SPDX-License-Identifier: Apache-2.0
//
// What the stages of a pipeline do in a step, decided by the compiler: the functions of the model's
// chunks, tensors that go from one to another, and a list of actions for each stage. A rank
// interprets the list of its stage, which has every chunk whose number is the stage's modulo their
// number.
#pragma once

#include "runtime/element_range.h"
#include "runtime/gradient_exchange.h"
#include "runtime/kernels/bounds.h"

#include <cstdint>
#include <span>

namespace trainc {

struct arenas;

enum class stage_action_kind {
  forward, // of a chunk and micro-batch, into its slot of the chunk's stash
  backward,
  input_gradient,  // what other chunks wait for
  weight_gradient, // the rest, of the same slot
  send_activation, // from the slot to a place at the receiver; waits until that is free
  receive_activation,
  send_gradient, // from the activations arena
  receive_gradient,
  reduce, // the chunk's gradients, over the replicas of the stage
  norm,   // all ranks meet: the step's total is whole
  update,
};

inline bool is_of_gradients(stage_action_kind message) {
  return message == stage_action_kind::send_gradient ||
         message == stage_action_kind::receive_gradient;
}

inline bool sends(stage_action_kind message) {
  return message == stage_action_kind::send_activation ||
         message == stage_action_kind::send_gradient;
}

// What does not apply is -1.
struct stage_action {
  stage_action_kind kind;
  int chunk = -1;
  int micro_batch = -1; // of the replica
  int slot = -1;        // of the chunk's stash
  int boundary = -1;    // of a message
  int place = -1;       // of a message, at the receiver; on CUDA at the sender too
};

// A tensor that one chunk makes and another reads: byte offsets, of activations in a slot of
// either's stash, of gradients in the activations arena.
struct crossing_tensor {
  const char *name;
  int64_t from, to, bytes;
};

struct chunk_boundary {
  int from, to; // chunks; gradients go back
  std::span<const crossing_tensor> activations, gradients;
  int activation_places, gradient_places; // for messages, at the receiver
};

// An input of the program that a chunk reads, and where in a slot of its stash.
struct chunk_input {
  int64_t number, offset;
};

struct chunk_program {
  void (*forward)(const arenas &);
  void (*backward)(const arenas &);        // or the input gradient alone
  void (*weight_gradient)(const arenas &); // null: the backward function has it
  int64_t activation_bytes;                // of the arena, for these functions and `evaluate`
  int64_t slot_bytes;
  int slots; // of the stash: micro-batches that are on their way through the chunk at once
  std::span<const chunk_input> inputs;
  range_list gradients, weight_gradients; // that either function overwrites, or has in buckets
  bucket_list buckets = {}, weight_buckets = {}; // of a program that shards gradients

  // That of an action which computes.
  auto function_of(stage_action_kind action) const {
    return action == stage_action_kind::forward           ? forward
           : action == stage_action_kind::weight_gradient ? weight_gradient
                                                          : backward;
  }
};

using action_list = std::span<const stage_action>;

struct pipeline {
  int stages;
  int64_t micro_batches; // of a step and replica
  const char *schedule;
  std::span<const chunk_program> chunks;
  std::span<const action_list> lists; // by stage
  std::span<const chunk_boundary> boundaries;
  // Where `forward` of one chunk leaves what it says of a micro-batch, in its slot.
  int loss_chunk;
  int64_t loss_offset = 0, loss_weight_offset = 0, index_check_offset = 0;

  int stage_of(int chunk) const { return chunk % stages; }
  // Of the arena of a stage, whose chunks take turns.
  int64_t activation_bytes(int stage) const {
    int64_t most = 0;
    for_each_chunk(stage, [&](const chunk_program &chunk, int) {
      most = larger_of(most, chunk.activation_bytes);
    });
    return most;
  }
  // Calls visit(chunk, its number).
  template <typename Visit> void for_each_chunk(int stage, const Visit &visit) const {
    for (size_t chunk = stage; chunk < chunks.size(); chunk += stages)
      visit(chunks[chunk], static_cast<int>(chunk));
  }
};

} // namespace trainc
