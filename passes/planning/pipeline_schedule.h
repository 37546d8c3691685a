// SPDX-License-Identifier: Apache-2.0
//
// Who does what when in a pipeline: one list of actions per stage. The model is
// cut into chunks in the order of the forward pass; chunk c is on stage c mod
// stages. Orders of GPipe (1811.06965), 1F1B (PipeDream-flush), interleaved 1F1B
// (2104.04473) and ZB-H1 (2401.10241); messages, slots and collectives follow
// from the order and the boundaries. In all of them a chunk sees its micro-batches
// in ascending order, forward and backward, so gradients are added in one order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainc::planning {

enum class ScheduleKind { gpipe, oneForwardOneBackward, interleaved, zeroBubble };

/// Tensors that chunk `from` makes and chunk `to`, not always the next, reads.
struct Boundary {
  int from, to; // from < to
};

struct Pipeline {
  int stages = 1;
  int chunksPerStage = 1; // above 1 for interleaved only
  int microBatches = 1;
  std::vector<Boundary> boundaries; // without repetitions

  int chunks() const { return stages * chunksPerStage; }
  int stageOf(int chunk) const { return chunk % stages; }
};

enum class ActionKind {
  forward,        // of a chunk and micro-batch, into a slot of the chunk's stash
  backward,       // input and weight gradient at once; frees the slot
  inputGradient,  // keeps the slot for the weight gradient
  weightGradient, // frees the slot
  sendActivation, // waits for the place at the receiver
  receiveActivation,
  sendGradient,
  receiveGradient,
  reduce, // the chunk's gradients, over the replicas of the stage
  norm,   // the step's totals, over all ranks
  update, // the stage's parameters
};

inline bool isGradient(ActionKind kind) { // a message of one
  return kind == ActionKind::sendGradient || kind == ActionKind::receiveGradient;
}

/// What does not apply is -1.
struct Action {
  ActionKind kind;
  int chunk = -1, microBatch = -1;
  int boundary = -1; // number in Pipeline::boundaries, of a message
  int peer = -1;     // the stage at the other side of a message; between its own chunks the same
  int slot = -1;     // of the chunk's stash, or the message's place at the receiver

  bool operator==(const Action &other) const = default;
};

struct Schedule {
  Pipeline pipeline;
  ScheduleKind kind = ScheduleKind::oneForwardOneBackward;
  std::vector<std::vector<Action>> actions; // by stage
  std::vector<int> stashSlots;              // by chunk: micro-batches in flight
  // By boundary: places for messages at the receiver. One more than are read at once,
  // so that the next can arrive meanwhile.
  std::vector<int> activationPlaces, gradientPlaces;
};

/// The words of options and plans: gpipe, 1f1b, interleaved, zb-h1.
const char *nameOf(ScheduleKind kind);
const char *nameOf(ActionKind kind);
/// Nothing where none has the name.
std::optional<ScheduleKind> scheduleKind(std::string_view name);

/// Why the pipeline has no schedule of this kind, with what to change; empty where it has.
std::string unfit(ScheduleKind kind, const Pipeline &pipeline);

/// Only of what is not unfit.
Schedule makeSchedule(ScheduleKind kind, const Pipeline &pipeline);

/// `forward of chunk 0, micro-batch 3, slot 1`.
std::string describe(const Action &action);

bool isCompute(ActionKind kind);
bool isSend(ActionKind kind);
bool isReceive(ActionKind kind);

} // namespace trainc::planning
