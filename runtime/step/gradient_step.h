// SPDX-License-Identifier: Apache-2.0
//
// One step: the gradients of the micro-batches of every rank, added in one order,
// and the update.
#pragma once

#include "runtime/ranks/stage_layout.h"
#include "runtime/run/run.h"
#include "runtime/step/batch_feed.h"
#include "runtime/step/micro_batch.h"
#include "runtime/step/rank_report.h"

#include <vector>

namespace trainc {

struct step_result {
  double loss;          // mean over all labels that count, added in the micro-batches' order
  double weight;        // sum of the micro-batches' weights: their number where all labels count
  double gradient_norm; // of the loss, before clipping; 0 without an update
  bool applied;         // the update was taken: loss and gradient are finite
  int requests;         // signals that any rank got (signal_request bits)
};

// Told what this rank does in a step, for `profile`.
class action_observer {
public:
  virtual ~action_observer() = default;
  // The action that begins ends with the next one. Of a step in one piece `backward` is the forward
  // pass too, and `reduce` has the last micro-batch's share of the addition.
  virtual void begins(const stage_action &action) = 0;
  virtual void ends() = 0; // what follows is of the step as a whole
};

class gradient_step {
public:
  // The model's random numbers follow from `seed`, the step and the micro-batch. With
  // `mean_per_batch` every micro-batch has the same weight, however many labels count in it.
  // Gradients are times --loss-scale where the program scales them.
  gradient_step(run &run, batch_feed &feed, int64_t micro_batches, uint64_t seed,
                bool mean_per_batch = false);

  // Unless it is null; until the next call.
  void observe(action_observer *observer) { observer_ = observer; }

  int64_t batches_per_step() const { return micro_batches_ * layout_.replicas; }

  // Takes batches first_batch ... first_batch + batches_per_step() - 1 of the
  // part for step number `step`; batch first_batch + r * micro_batches + j is micro-batch j
  // of replica r, which is rank r where a step is not cut into stages, and first_batch + j *
  // replicas + r where no rank keeps all gradients. Leaves the sum in the
  // gradients arena of the first rank at least. An error of any rank is
  // thrown on all, and the update was not taken then. Allocates nothing.
  step_result operator()(data_part part, int64_t first_batch, int64_t step) {
    return take(part, first_batch, step, false);
  }
  // Takes the step, then the update with the scalars that were set before.
  step_result with_update(data_part part, int64_t first_batch, int64_t step) {
    return take(part, first_batch, step, true);
  }

private:
  step_result take(data_part part, int64_t first_batch, int64_t step, bool with_update);
  void submit(data_part part, int64_t batch, int64_t next);
  void note(const stage_action &action) const {
    if (observer_)
      observer_->begins(action);
  }
  void set_part_scales(data_part part, int64_t first_batch, int64_t step);
  void count_labels(data_part part, int64_t first_batch, int64_t step);
  void act(data_part part, int64_t first_batch, int64_t step, bool with_update);
  void act_alone(const stage_action &action, int64_t step);
  void act_in_stage(const stage_action &action, bool reads, int64_t step);
  // Over all replicas.
  int64_t number_of(int64_t micro_batch) const {
    return run_.prog.shards_gradients ? micro_batch * layout_.replicas + layout_.replica
                                      : layout_.replica * micro_batches_ + micro_batch;
  }
  // Calls visit(replica, micro-batch) in the order of these numbers.
  template <typename Visit> void for_each_micro_batch(const Visit &visit) const {
    const bool in_turn = run_.prog.shards_gradients;
    const int64_t all = batches_per_step();
    for (int64_t number = 0; number < all; ++number)
      visit(static_cast<int>(in_turn ? number % layout_.replicas : number / micro_batches_),
            in_turn ? number / layout_.replicas : number % micro_batches_);
  }
  bool reads_batch(const stage_action &action) const;
  int64_t batch_after(int64_t first_batch, size_t action) const;

  run &run_;
  batch_feed &feed_;
  stage_layout layout_;
  int64_t micro_batches_;
  std::vector<stage_action> actions_;
  uint64_t seed_;
  // Every micro-batch weighs 1: asked for, or it is the only one of a step, and a loss of several
  // parts then needs no count of the whole step.
  bool mean_per_batch_;
  action_observer *observer_ = nullptr;
  std::vector<char> faults_; // of each micro-batch of a step in stages, as far as this rank knows
  kept_scalars kept_;
  int status_ = 0; // an exit code, where this rank's data gave an error
  std::string message_;
  // Weights of the parts of the loss, micro-batch by micro-batch.
  std::vector<double> own_weights_, all_weights_;
  rank_reports reports_; // with the loss of each micro-batch
};

} // namespace trainc
