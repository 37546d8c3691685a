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

template <typename T>
void compute_rnn(RECURRENCE, const T *gates, const T *r, const T *bias, const T *h,
                 const int64_t *lengths, T *states, char *scratch) {
  const int64_t hidden = sizes.hidden, batch = sizes.batch;
  std::copy_n(h, batch * hidden, states + place_of(sizes, reverse, 0).before * batch * hidden);
  with_rnn_gate<T>(sizes, kinds, alphas, betas, clip, reverse, [&](const auto &gate) {
    const parts<T> all(1, sizes, scratch);
    all.run(
        false, 1,
        [&](const part<T> &own) { copy_transposed(r, 1, hidden, own.unit, own.units, own.r); },
        [&](int64_t step, int, const part<T> &own) {
          const step_place place = place_of(sizes, reverse, step);
          multiply_states(own.rows, own.units, hidden,
                          states + (place.before * batch + own.row) * hidden, hidden, own.r, false,
                          own.product);
          for (int64_t row = own.row; row < own.row + own.rows; ++row) {
            const T *from = states + (place.before * batch + row) * hidden + own.unit,
                    *x = gates + (place.at * batch + row) * hidden + own.unit,
                    *product = own.product + (row - own.row) * own.units;
            T *to = states + (place.behind * batch + row) * hidden + own.unit;
            if (place.at >= lengths[row])
              std::copy_n(from, own.units, to);
            else
              for_units<T>(own.units, [=, first = bias + own.unit](int64_t j) INLINED {
                to[j] = gate.value(x[j] + first[j] + product[j]);
              });
          }
        });
  });
}

template <typename T, typename Gate>
void rnn_gradient_row(const Gate &gate, const T *given, const T *y, const T *product, bool active,
                      int64_t units, T *of_state, T *gradient) {
  for_units<T>(units,
               [=](int64_t j) INLINED { of_state[j] += given[j] + (product ? product[j] : T(0)); });
  for_units<T>(units, [=](int64_t j) INLINED {
    gradient[j] = active ? of_state[j] * gate.slope(y[j]) : T(0);
    of_state[j] = active ? T(0) : of_state[j];
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
        true, 1,
        [&](const part<T> &own) { copy_columns(r, hidden, hidden, own.unit, own.units, own.r); },
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
          for (int64_t row = own.row; row < own.row + own.rows; ++row) {
            const int64_t behind = (place.behind * batch + row) * hidden + own.unit;
            rnn_gradient_row(gate, dstates + behind, states + behind,
                             is_first ? nullptr : own.product + (row - own.row) * own.units,
                             place.at < lengths[row], own.units, dh + row * hidden + own.unit,
                             dgates + (place.at * batch + row) * hidden + own.unit);
          }
        });
  });
}

} // namespace

DEFINE_RNN(float)
DEFINE_RNN(double)

} // namespace trainc
