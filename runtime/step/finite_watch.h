// SPDX-License-Identifier: Apache-2.0
//
// Looks for the first tensor of a training step that is not finite.
#pragma once

#include "runtime/observe/tensor_statistics.h"
#include "runtime/step/plan_observer.h"

#include <string>
#include <vector>

namespace trainc {

class finite_watch final : public plan_observer {
public:
  explicit finite_watch(run &run) : plan_observer(run), taker_(most_elements()) {}

  // What was found since it was attached: "'h.1.mlp.act' has 3 NaN of 4096 elements, where
  // 'h.1.mlp.fc', 'h.1.mlp.act' are computed; the largest number before it is 3.1e+38, in
  // 'h.1.mlp.c_fc'". Empty: nothing.
  const std::string &found() const { return found_; }

protected:
  void entered(const char *name, const planned_function *function) override;
  void made(int step, const std::vector<planned_tensor> &tensors) override;

private:
  void look_at(const planned_tensor &tensor, int step);
  std::vector<std::string> nodes_of(int step) const;

  statistics_taker taker_;
  std::string function_; // that runs
  std::string found_, masked_, of_largest_;
  double largest_ = 0;
};

} // namespace trainc
