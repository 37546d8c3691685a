// SPDX-License-Identifier: Apache-2.0
//
// Forward, backward and update over the micro-batches of a step.
#include "runtime/step/gradient_step.h"

#include "runtime/process/signals.h"

#include <algorithm>
#include <cmath>

namespace trainc {

// What this rank does in a step. Where a step is not cut into stages, `backward` of a micro-batch
// is its forward pass too and adds the gradients, except the last ones, which `reduce` adds.
static std::vector<stage_action> actions_of(const program &program, const stage_layout &layout,
                                            int64_t micro_batches) {
  if (program.stages) {
    const action_list &list = program.stages->lists[layout.stage];
    return {list.begin(), list.end()};
  }
  std::vector<stage_action> actions;
  const int last = static_cast<int>(micro_batches) - 1;
  for (int j = 0; j <= last; ++j)
    actions.push_back({.kind = stage_action_kind::backward, .micro_batch = j});
  actions.push_back({.kind = stage_action_kind::reduce});
  actions.push_back({.kind = stage_action_kind::update});
  return actions;
}

gradient_step::gradient_step(run &run, batch_feed &feed, int64_t micro_batches, uint64_t seed,
                             bool mean_per_batch)
    : run_(run), feed_(feed), layout_(run.prog, run.ranks.rank(), run.ranks.size()),
      micro_batches_(micro_batches), actions_(actions_of(run.prog, layout_, micro_batches)),
      seed_(seed), mean_per_batch_(mean_per_batch || (!run.prog.loss_parts.empty() &&
                                                      micro_batches * run.ranks.size() == 1)),
      faults_(static_cast<size_t>(micro_batches)), kept_(run.target, run.prog, micro_batches),
      reports_(run, static_cast<size_t>(micro_batches)) {
  if (run.prog.count_labels && !mean_per_batch_)
    own_weights_.resize(run.prog.loss_parts.size() * static_cast<size_t>(micro_batches));
  all_weights_.resize(own_weights_.size() * static_cast<size_t>(run.ranks.size()));
  if (run.prog.loss_scale_offset >= 0) // until others set it
    run.target.set_scalar(run.prog.loss_scale_offset, run.options.loss_scale);
}

// A rank that fails goes on to meet the others in the sums, where its fault stops the update.
void gradient_step::submit(data_part part, int64_t batch, int64_t next) {
  try {
    if (status_ == 0)
      feed_.submit(part, batch, next);
  } catch (const failure &error) {
    status_ = error.code;
    message_ = error.message;
  }
  if (status_ != 0)
    feed_.submit_nothing();
  set_batch_state(run_.target, run_.prog, status_ != 0, mean_per_batch_);
}

// What the parts of the loss weigh in each micro-batch of the step, on every rank.
void gradient_step::count_labels(data_part part, int64_t first_batch, int64_t step) {
  const int64_t parts = std::ssize(run_.prog.loss_parts);
  auto for_each_weight = [&](const auto &visit) {
    for (int64_t i = 0; i < parts; ++i)
      if (run_.prog.loss_parts[i].weight.name)
        visit(run_.prog.loss_parts[i].weight, i);
  };
  for (int64_t j = 0; j < micro_batches_; ++j) {
    const int64_t next = first_batch + number_of((j + 1) % micro_batches_);
    submit(part, first_batch + number_of(j), next);
    set_random_key(run_.target, run_.prog, seed_, step, number_of(j));
    run_.target.run(entry::count_labels);
    for_each_weight([&](const tensor_place &weight, int64_t i) {
      run_.target.keep(weight, static_cast<int>(j * parts + i));
    });
    feed_.load_ahead(part, next);
  }
  run_.target.finish();
  for (int64_t j = 0; j < micro_batches_; ++j)
    for_each_weight([&](const tensor_place &, int64_t i) {
      own_weights_[static_cast<size_t>(j * parts + i)] =
          run_.target.kept(static_cast<int>(j * parts + i));
    });
  run_.watch.now(activity::exchanging);
  run_.ranks.gather(own_weights_.data(), static_cast<int64_t>(own_weights_.size() * sizeof(double)),
                    all_weights_.data());
  run_.watch.now(activity::computing);
}

// A part that has weights is divided by their sum over the step, which must be known before its
// first micro-batch: parts weigh differently, so that no factor after the sum of the gradients
// could make up for it. Added in the micro-batches' order, whichever rank has them.
void gradient_step::set_part_scales(data_part part, int64_t first_batch, int64_t step) {
  if (!own_weights_.empty())
    count_labels(part, first_batch, step);
  const size_t parts = run_.prog.loss_parts.size();
  for (size_t i = 0; i < parts; ++i) {
    const loss_part &of = run_.prog.loss_parts[i];
    if (of.scale_offset < 0)
      continue;
    double weight = of.is_sum ? 1 : 0;
    if (!of.is_sum && !all_weights_.empty())
      for_each_micro_batch([&](int replica, int64_t j) {
        const auto number = static_cast<size_t>(replica * micro_batches_ + j);
        weight += all_weights_[number * parts + i];
      });
    const auto batches = static_cast<double>(batches_per_step());
    run_.target.set_scalar(of.scale_offset, mean_per_batch_ ? 1 : batches / weight);
  }
}

bool gradient_step::reads_batch(const stage_action &action) const {
  if (!run_.prog.stages)
    return action.kind == stage_action_kind::backward;
  return action.kind == stage_action_kind::forward &&
         !run_.prog.stages->chunks[action.chunk].inputs.empty();
}

// The batch that is read after the one of an action, of this step or the next. Chunks of a stage
// read the same ones in turn.
int64_t gradient_step::batch_after(int64_t first_batch, size_t action) const {
  size_t next = action;
  do
    next = (next + 1) % actions_.size();
  while (!reads_batch(actions_[next]));
  return first_batch + number_of(actions_[next].micro_batch) +
         (next <= action ? batches_per_step() : 0);
}

// Micro-batches come to each chunk in ascending order, forward and backward.
void gradient_step::act(data_part part, int64_t first_batch, int64_t step, bool with_update) {
  for (size_t i = 0; i < actions_.size(); ++i) {
    const stage_action &action = actions_[i];
    if (action.kind == stage_action_kind::update && !with_update)
      continue;
    note(action);
    const bool reads = reads_batch(action);
    const int64_t next = reads ? batch_after(first_batch, i) : -1;
    if (reads)
      submit(part, first_batch + number_of(action.micro_batch), next);
    if (action.kind == stage_action_kind::update)
      run_.target.run(entry::update);
    else if (run_.prog.stages)
      act_in_stage(action, reads, step);
    else
      act_alone(action, step);
    if (reads)
      feed_.load_ahead(part, next);
  }
}

void gradient_step::act_alone(const stage_action &action, int64_t step) {
  const int64_t j =
      action.kind == stage_action_kind::backward ? action.micro_batch : micro_batches_ - 1;
  if (action.kind == stage_action_kind::backward) {
    set_random_key(run_.target, run_.prog, seed_, step, number_of(j));
    run_.target.run(entry::forward_backward);
    if (j == micro_batches_ - 1)
      return;
  }
  run_.watch.now(activity::exchanging);
  run_.target.sum_gradients(j);
  run_.watch.now(activity::computing);
  kept_.keep_losses(j);
}

void gradient_step::act_in_stage(const stage_action &action, bool reads, int64_t step) {
  if (action.kind == stage_action_kind::reduce || action.kind == stage_action_kind::norm) {
    run_.watch.now(activity::exchanging);
    run_.target.run(action);
    return run_.watch.now(activity::computing);
  }
  char &fault = faults_[static_cast<size_t>(action.micro_batch)];
  if (action.boundary >= 0) { // a message
    run_.watch.now(activity::exchanging);
    fault |= run_.target.move(action, fault != 0) ? 1 : 0;
    return run_.watch.now(activity::computing);
  }
  if (reads) {
    run_.target.keep_inputs(action);
    fault |= status_ != 0 ? 1 : 0;
  }
  set_random_key(run_.target, run_.prog, seed_, step, number_of(action.micro_batch));
  if (action.kind != stage_action_kind::forward)
    run_.target.set_scalar(run_.prog.batch_fault_offset, fault);
  run_.target.run(action);
  if (action.kind == stage_action_kind::forward && action.chunk == run_.prog.stages->loss_chunk)
    kept_.keep_losses(action.micro_batch, action.slot);
}

step_result gradient_step::take(data_part part, int64_t first_batch, int64_t step,
                                bool with_update) {
  status_ = 0;
  run_.watch.now(activity::computing);
  run_.target.round_parameters();
  run_.target.expect_update(with_update);
  set_part_scales(part, first_batch, step);
  std::fill(faults_.begin(), faults_.end(), 0);
  act(part, first_batch, step, with_update);
  if (observer_)
    observer_->ends();
  if (with_update)
    kept_.keep_norm();
  run_.watch.now(activity::exchanging); // a device that replays exchanges meanwhile
  run_.target.finish();

  for (int64_t j = 0; j < micro_batches_ && status_ == 0; ++j)
    if (message_ = kept_.index_problem(j); !message_.empty())
      status_ = exit_data;

  reports_.mine() = {status_, take_signal_requests()};
  for (int64_t j = 0; j < micro_batches_; ++j)
    reports_.my_means()[static_cast<size_t>(j)] = kept_.loss(j);
  reports_.exchange(message_);
  run_.watch.now(activity::computing);

  step_result result = {0, 0, with_update ? kept_.norm() : 0, with_update, reports_.requests()};
  const pipeline *stages = run_.prog.stages;
  const int stage = stages ? stages->stage_of(stages->loss_chunk) : 0; // which has the losses
  for_each_micro_batch([&](int replica, int64_t j) {
    const weighed_mean &loss =
        reports_.means_of(layout_.rank_of(replica, stage))[static_cast<size_t>(j)];
    result.loss += loss.part();
    result.weight += loss.weight;
  });
  result.loss /= result.weight;
  for (double *value : {&result.loss, &result.gradient_norm})
    if (std::isnan(*value))
      *value = NAN; // of no sign
  result.applied = with_update && std::isfinite(result.gradient_norm);
  return result;
}

} // namespace trainc
