// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers over the steps of a sequence, and their gradients.
#pragma once

#include <cstdint>

namespace trainc {

// Steps, sequences of the batch, elements of the hidden state.
struct recurrence_sizes {
  int64_t steps, batch, hidden;
};

// The functions of a cell's gates (`activation` of runtime/kernels/recurrent_cells.h), with alpha
// and beta of each in turn; what they are applied to is bounded by `clip`, unless that is 0.
constexpr int max_activations = 3;
struct cell_activations {
  int64_t of[max_activations] = {};
};
struct activation_numbers {
  double of[max_activations] = {};
};

#define RECURRENCE                                                                                 \
  const recurrence_sizes &sizes, const cell_activations &kinds, const activation_numbers &alphas,  \
      const activation_numbers &betas, double clip, bool reverse

// Functions of recurrent layers take the tensors of nn's operations in their order, contiguous: the
// gates of nn.lstm and nn.gru become `activated` and these the gradient of the gates, in place;
// candidates become their gradient. `scratch` has recurrence_scratch_bytes. The order of every sum
// follows from the sizes alone.
#define RECURRENCE_ARGUMENTS sizes, kinds, alphas, betas, clip, reverse

// ---- for the compiler and the implementations

// The steps in the order in which they are computed, from 0: where each is, and the states
// before and after it.
struct step_place {
  int64_t at, before, behind;
};
constexpr step_place place_of(const recurrence_sizes &sizes, bool reverse, int64_t step) {
  if (reverse)
    return {sizes.steps - 1 - step, sizes.steps - step, sizes.steps - 1 - step};
  return {step, step, step + 1};
}

// Elements of a row that vectors write whole, of any machine and type.
constexpr int64_t whole_vectors(int64_t elements) {
  constexpr int64_t lanes = 16;
  return (elements + lanes - 1) / lanes * lanes;
}

// r once more as a product reads it best, and a step's product.
inline int64_t recurrence_scratch_bytes(int64_t gates, const recurrence_sizes &sizes,
                                        int64_t element_bytes) {
  return gates * whole_vectors(sizes.hidden) * (sizes.hidden + sizes.batch) * element_bytes;
}

} // namespace trainc
