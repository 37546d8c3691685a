// SPDX-License-Identifier: Apache-2.0
//
// How messages of a step in stages get from one chunk to another: through memory that both ranks
// map (shared_mail.h), which ranks of one host do, or by MPI (message_mail.h). A message has its
// tensors whole, after a line whose first byte says whether the micro-batch has a fault.
#pragma once

#include "runtime/pipeline.h"
#include "runtime/ranks/rank_memory.h"
#include "runtime/ranks/shared_memory.h"

#include <cstddef>

namespace trainc {

// One direction of a boundary: what goes from one stage to another, or to itself, in one order.
struct message_kind {
  int sender, receiver; // stages
  std::span<const crossing_tensor> tensors;
  int places;

  message_kind(const pipeline &pipeline, int64_t boundary, bool of_gradients) {
    const chunk_boundary &each = pipeline.boundaries[boundary];
    const int from = pipeline.stage_of(each.from), to = pipeline.stage_of(each.to);
    sender = of_gradients ? to : from;
    receiver = of_gradients ? from : to;
    tensors = of_gradients ? each.gradients : each.activations;
    places = of_gradients ? each.gradient_places : each.activation_places;
  }

  int64_t place_bytes() const {
    return trainc::place_bytes(cpu_messages, tensors.size(),
                               [&](size_t i) { return tensors[i].bytes; });
  }
};

// Numbers of kinds: those of a boundary are neighbours.
inline int64_t kind_count(const pipeline &pipeline) { return 2 * std::ssize(pipeline.boundaries); }
inline message_kind kind_of(const pipeline &pipeline, int64_t kind) {
  return {pipeline, kind / 2, kind % 2 == 1};
}
inline int64_t kind_of(const stage_action &message) {
  return 2 * message.boundary + (is_of_gradients(message.kind) ? 1 : 0);
}

class stage_mail {
public:
  virtual ~stage_mail() = default;
  // Memory for this message, once it is free; it goes with `end_send`.
  virtual char *begin_send(const stage_action &message) = 0;
  virtual void end_send(const stage_action &message) = 0;
  // The message, once it has come; its memory is free with `end_receive`.
  virtual const char *begin_receive(const stage_action &message) = 0;
  virtual void end_receive(const stage_action &message) = 0;
};

} // namespace trainc
