// SPDX-License-Identifier: Apache-2.0
//
// The update of a program whose parameters change while the backward pass goes on (trainc
// --update-in-backward). Where a gradient is whole and no later step reads what it belongs to,
// `update` takes it from the activations arena; no arena has all gradients. Of one rank and one
// micro-batch.
#pragma once

#include "runtime/program.h"

#include <vector>

namespace trainc {

class backward_update final : public gradient_exchange {
public:
  explicit backward_update(const program &program);

  // forward_backward begins, on these arenas. Without an update the gradients are only measured.
  void begin(const arenas &memory, bool with_update);
  void complete(int bucket) override;
  // Of all gradients since `begin`, as forward_backward makes them. Once it is not finite, nothing
  // more is updated.
  double sum_of_squares() const { return sum_of_squares_; }

private:
  double squares_of(const gradient_piece &piece, const char *gradient);
  void update(const gradient_piece &piece, const char *gradient);
  void update_elements(const element_range &elements, const char *gradient);

  const program &program_;
  arenas memory_ = {};
  std::vector<char> last_row_; // of a gradient, zero after its end
  std::vector<double> sums_;   // of blocks of a gradient
  bool with_update_ = true;
  double sum_of_squares_ = 0;
};

} // namespace trainc
