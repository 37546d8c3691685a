// SPDX-License-Identifier: Apache-2.0
//
// What the entry functions are told of a micro-batch, and the scalars that a step keeps of each
// until it ends.
#pragma once

#include "runtime/device.h"

#include <functional>
#include <string>

namespace trainc {

// A mean of a batch and what counts in it. Without a label that counts the mean is not a number,
// and no part of a sum.
struct weighed_mean {
  double mean, weight;
  double part() const { return weight > 0 ? mean * weight : 0; }
};

// Runs the evaluate entry on the batch at hand, to its end. `meanwhile` is called while it works.
// Throws `failure` (exit_data) where an index that the model computed was out of range: the results
// are then those of another index. Allocates nothing.
void evaluate_batch(device &target, const program &program,
                    const std::function<void()> &meanwhile = nullptr);

// The mean of the first `count` numbers of a tensor.
double mean_of(device &target, const tensor_place &values, int64_t count);

// Sets the key of the numbers that the model draws in micro-batch `number`, counted over all ranks.
void set_random_key(device &target, const program &program, uint64_t seed, int64_t step,
                    int64_t number);

// Whether the batch could not be read, and whether it weighs 1 however many labels count in it.
void set_batch_state(device &target, const program &program, bool is_faulty, bool mean_per_batch);

// In the slots of device::keep: the losses, the norm of the gradient, the weights, the index
// checks.
class kept_scalars {
public:
  kept_scalars(device &target, const program &program, int64_t micro_batches)
      : target_(target), program_(program), micro_batches_(micro_batches) {}

  // Queue the copies. Of a step in stages the losses are in the stash.
  void keep_losses(int64_t micro_batch, int stash_slot = 0);
  void keep_norm();

  // After device::finish.
  weighed_mean loss(int64_t micro_batch) const;
  double norm() const { return target_.kept(norm_slot()); }
  // As index_problem has it (index_check.h).
  std::string index_problem(int64_t micro_batch) const;

private:
  int norm_slot() const { return static_cast<int>(micro_batches_); }
  int weight_slot(int64_t micro_batch) const {
    return static_cast<int>(micro_batches_ + 1 + micro_batch);
  }
  int index_slot(int64_t micro_batch) const {
    return static_cast<int>(2 * micro_batches_ + 1 + 2 * micro_batch);
  }

  device &target_;
  const program &program_;
  int64_t micro_batches_;
};

} // namespace trainc
