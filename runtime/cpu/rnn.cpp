// SPDX-License-Identifier: Apache-2.0
//
// A recurrent layer of one gate and its gradient, on parts of the state or of the batch
// (recurrent_parts.h).
#include "runtime/kernels/rnn.h"

#include "runtime/cpu/recurrent_parts.h"

namespace trainc {
namespace {

template <typename T, typename Work> void with_rnn_gate(RECURRENCE, Work work) {
  (void)sizes, (void)reverse;
  if (is_usual(kinds, clip, activation::tanh, activation(), activation()))
    return work(bounded<T, tanh_gate>(tanh_gate(), 0));
  if (is_usual(kinds, clip, activation::relu, activation(), activation()))
    return work(bounded<T, relu_gate>(relu_gate(), 0));
  work(bounded<T, any_gate<T>>(any_gate_of<T>(kinds, alphas, betas, 0), clip));
}

template <typename T, typename Gate>
void rnn_rows(const recurrence_sizes &sizes, const Gate &gate, const T *gates, const T *bias,
              const int64_t *lengths, T *states, const step_place &place, const part<T> &own) {
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const T *from = states + (place.before * sizes.batch + row) * sizes.hidden + own.unit,
            *x = gates + (place.at * sizes.batch + row) * sizes.hidden + own.unit,
            *first = bias + own.unit, *product = own.product_row(row, own.units);
    T *to = states + (place.behind * sizes.batch + row) * sizes.hidden + own.unit;
    if (place.at >= lengths[row]) {
      std::copy_n(from, own.units, to);
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < own.units; ++j)
      to[j] = gate.value(x[j] + first[j] + product[j]);
  });
}

template <typename T>
void compute_rnn(RECURRENCE, const T *gates, const T *r, const T *bias, const T *h,
                 const int64_t *lengths, T *states, char *scratch) {
  const int64_t hidden = sizes.hidden, batch = sizes.batch;
  std::copy_n(h, batch * hidden, states + place_of(sizes, reverse, 0).before * batch * hidden);
  with_rnn_gate<T>(sizes, kinds, alphas, betas, clip, reverse, [&](const auto &gate) {
    const parts<T> all(1, sizes, scratch);
    all.run(
        false, 1, [&](const part<T> &own) { own.pack_rows(r, 1, hidden, own.r); },
        [&](int64_t step, int, const part<T> &own) {
          const step_place place = place_of(sizes, reverse, step);
          multiply_states(own.rows, own.units, hidden,
                          states + (place.before * batch + own.row) * hidden, hidden, own.r, false,
                          own.product);
          rnn_rows(sizes, gate, gates, bias, lengths, states, place, own);
        });
  });
}

template <typename T, typename Gate>
void rnn_gradient_rows(const recurrence_sizes &sizes, const Gate &gate, const int64_t *lengths,
                       const T *states, const T *dstates, const step_place &place, bool is_first,
                       T *dgates, T *dh, const part<T> &own) {
  if (is_first)
    std::fill_n(own.product, own.rows * whole_vectors(own.units), T(0));
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const int64_t behind = (place.behind * sizes.batch + row) * sizes.hidden + own.unit;
    const T *given = dstates + behind, *y = states + behind,
            *product = own.product_row(row, own.units);
    T *of_state = dh + row * sizes.hidden + own.unit,
      *gradient = dgates + (place.at * sizes.batch + row) * sizes.hidden + own.unit;
    const bool active = place.at < lengths[row];
#pragma omp simd
    for (int64_t j = 0; j < own.units; ++j) {
      const T total = of_state[j] + (given[j] + product[j]);
      gradient[j] = active ? total * gate.slope(y[j]) : T(0);
      of_state[j] = active ? T(0) : total;
    }
  });
}

template <typename T>
void compute_rnn_gradient(RECURRENCE, const T *r, const int64_t *lengths, const T *states,
                          const T *dstates, T *dgates, T *dh, char *scratch) {
  const int64_t hidden = sizes.hidden, batch = sizes.batch;
  std::fill_n(dh, batch * hidden, T(0));
  with_rnn_gate<T>(sizes, kinds, alphas, betas, clip, reverse, [&](const auto &gate) {
    const parts<T> all(1, sizes, scratch);
    all.run(
        true, 1, [&](const part<T> &own) { own.pack_columns(r, hidden, hidden, own.r); },
        [&](int64_t step, int, const part<T> &own) {
          const bool is_first = step == sizes.steps - 1;
          if (!is_first)
            multiply_states(own.rows, own.units, hidden,
                            dgates +
                                (place_of(sizes, reverse, step + 1).at * batch + own.row) * hidden,
                            hidden, own.r, false, own.product);
          const step_place place = place_of(sizes, reverse, std::max<int64_t>(step, 0));
          if (step < 0)
            return add_initial(sizes, dstates + place.before * batch * hidden, own, dh);
          rnn_gradient_rows(sizes, gate, lengths, states, dstates, place, is_first, dgates, dh,
                            own);
        });
  });
}

} // namespace

DEFINE_RNN(float)
DEFINE_RNN(double)

} // namespace trainc
