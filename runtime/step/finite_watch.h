// SPDX-License-Identifier: Apache-2.0
//
// Looks for the first tensor of a training step that is not finite.
#pragma once

#include "runtime/observe/tensor_statistics.h"
#include "runtime/step/plan_observer.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainc {

class finite_watch final : public plan_observer {
public:
  explicit finite_watch(run &run);

  // What was found since it was attached: "'h.1.mlp.act' has 3 NaN of 4096 elements, where
  // 'h.1.mlp.act' (Exp, model.py:35), 'h.1.mlp.fc' (Mul) are computed; the largest number before it
  // is 3.1e+38, in 'h.1.mlp.c_fc'". Empty: nothing.
  const std::string &found() const { return found_; }
  // What may help against it; empty: the operation that made it says nothing of that.
  const std::string &advice() const { return advice_; }

protected:
  void entered(const char *name, const planned_function *function) override;
  void made(int step, const std::vector<placed_tensor> &tensors) override;

private:
  struct computation {
    std::string name;
    planned_node of; // a node of the model; empty where it is none's
    std::string text() const;
  };
  using computations = std::vector<computation>;

  void look_at(const placed_tensor &tensor, int step);
  void note(const std::string &tensor, const tensor_statistics &has);
  void find(const placed_tensor &tensor, const tensor_statistics &has,
            const computations &computed);
  computations computed_in(int step) const;
  bool may_be_mask(const std::string &tensor, const computations &computed) const;
  std::string advice_on(const std::string &tensor, const computations &computed) const;
  static bool has_one_of(const computations &computed, std::span<const std::string_view> operators);
  static std::string text_of(const computations &computed);

  statistics_taker taker_;
  std::map<std::string, const planned_node *> nodes_; // by their names in plans
  std::string function_;                              // that runs
  std::string found_, advice_, masked_, of_largest_;
  double largest_ = 0;
  bool has_grown_ = false;
};

} // namespace trainc
