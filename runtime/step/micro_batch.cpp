// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/micro_batch.h"

#include "runtime/failure.h"
#include "runtime/files/data_types.h"
#include "runtime/random.h"
#include "runtime/step/index_check.h"

namespace trainc {

void set_random_key(device &target, const program &program, uint64_t seed, int64_t step,
                    int64_t number) {
  if (program.draws_random_numbers)
    target.set_bits(program.random_key_offset, micro_batch_key(seed, step, number));
}

void evaluate_batch(device &target, const program &program,
                    const std::function<void()> &meanwhile) {
  constexpr int index_slot = 0; // of device::keep, and 1
  target.run(entry::evaluate);
  keep_index_check(target, program, program.index_check, index_slot);
  if (meanwhile)
    meanwhile();
  target.finish();
  if (const std::string problem = index_problem(target, program, index_slot); !problem.empty())
    throw failure(exit_data, problem);
}

double mean_of(device &target, const tensor_place &values, int64_t count) {
  const int64_t bytes = bytes_of(values.type);
  const char *numbers = target.read(target.places()[values.arena] + values.offset, count * bytes);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += number_at(values.type, numbers + i * bytes);
  return sum / static_cast<double>(count);
}

void set_batch_state(device &target, const program &program, bool is_faulty, bool mean_per_batch) {
  target.set_scalar(program.batch_fault_offset, is_faulty ? 1 : 0);
  if (program.loss_weight.name || program.count_labels)
    target.set_scalar(program.mean_per_batch_offset, mean_per_batch ? 1 : 0);
}

void kept_scalars::keep_losses(int64_t micro_batch, int stash_slot) {
  tensor_place loss = program_.loss, weight = program_.loss_weight, check = program_.index_check;
  if (const pipeline *stages = program_.stages) {
    loss.arena = weight.arena = check.arena = arena_kind::stash;
    loss.offset = stages->loss_offset;
    weight.offset = stages->loss_weight_offset;
    check.offset = stages->index_check_offset;
  }
  target_.keep(loss, static_cast<int>(micro_batch), stash_slot);
  if (weight.name)
    target_.keep(weight, weight_slot(micro_batch), stash_slot);
  keep_index_check(target_, program_, check, index_slot(micro_batch), stash_slot);
}

void kept_scalars::keep_norm() {
  target_.keep({"gradient_norm",
                data_type::f64,
                0,
                {},
                arena_kind::workspace,
                program_.gradient_norm_offset},
               norm_slot());
}

weighed_mean kept_scalars::loss(int64_t micro_batch) const {
  return {target_.kept(static_cast<int>(micro_batch)),
          program_.loss_weight.name ? target_.kept(weight_slot(micro_batch)) : 1};
}

std::string kept_scalars::index_problem(int64_t micro_batch) const {
  return trainc::index_problem(target_, program_, index_slot(micro_batch));
}

} // namespace trainc
