// SPDX-License-Identifier: Apache-2.0
//
// Histograms of trained parameters, of their gradients and of what a step adds to them, for
// TensorBoard. Each rank shows those of its stage; the first one writes them all.
#pragma once

#include "runtime/step/tensor_watch.h"
#include "runtime/train/run_events.h"

#include <vector>

namespace trainc {

class parameter_histograms final : public tensor_sink {
public:
  // Takes its memory.
  explicit parameter_histograms(run &run);

  void take(const watched_values &values, statistics_taker &taker) override;
  // After a step: brings those of all stages to the first rank. Collective.
  void bring_to_first();
  // There, of the program's groups of parameters: the norms of their gradients, before they are
  // clipped. Empty where there is one group alone, or no rank has a gradient whole.
  std::vector<group_norm> norms_of_groups() const;
  // There, all. They are forgotten then.
  void write(int64_t step, run_events &events);

private:
  // Sent between ranks as it is.
  struct histogram {
    tensor_kind kind;
    int64_t parameter; // its number in the program
    tensor_statistics of;
  };

  run &run_;
  std::vector<std::string> names_; // of the program's parameters, as the module has them
  std::vector<histogram> taken_;
};

} // namespace trainc
