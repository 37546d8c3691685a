// SPDX-License-Identifier: Apache-2.0
//
// LSTM and its gradient, on parts of the state or of the batch (recurrent_parts.h).
#include "runtime/kernels/lstm.h"

#include "runtime/cpu/recurrent_parts.h"

namespace trainc {
namespace {

// Calls work(cell) with the usual functions as types of their own, which loops vectorise.
template <typename T, typename Work> void with_lstm_cell(RECURRENCE, bool coupled, Work work) {
  (void)sizes, (void)reverse;
  if (is_usual(kinds, clip, activation::sigmoid, activation::tanh, activation::tanh) && !coupled)
    return work(lstm_cell<T, sigmoid_gate, tanh_gate, tanh_gate, false>{
        {sigmoid_gate(), 0}, {tanh_gate(), 0}, tanh_gate()});
  using any = any_gate<T>;
  const any gates[] = {any_gate_of<T>(kinds, alphas, betas, 0),
                       any_gate_of<T>(kinds, alphas, betas, 1),
                       any_gate_of<T>(kinds, alphas, betas, 2)};
  if (coupled)
    work(lstm_cell<T, any, any, any, true>{{gates[0], clip}, {gates[1], clip}, gates[2]});
  else
    work(lstm_cell<T, any, any, any, false>{{gates[0], clip}, {gates[1], clip}, gates[2]});
}

template <typename T> struct lstm_tensors {
  const T *bias, *peepholes;
  const int64_t *lengths;
  T *states, *cells, *gates;
};

template <typename T, typename Cell>
void lstm_rows(const recurrence_sizes &sizes, const lstm_tensors<T> &tensors, const Cell &cell,
               const step_place &place, const part<T> &own) {
  const int64_t hidden = sizes.hidden, units = own.units;
  const T *bias = tensors.bias + own.unit, *peepholes = tensors.peepholes + own.unit;
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const int64_t from = (place.before * sizes.batch + row) * hidden + own.unit,
                  to = (place.behind * sizes.batch + row) * hidden + own.unit;
    T *gates = tensors.gates + (place.at * sizes.batch + row) * 4 * hidden + own.unit;
    const T *product = own.product_row(row, 4 * units);
    T *states = tensors.states, *cells = tensors.cells;
    if (place.at >= tensors.lengths[row]) {
      std::copy_n(states + from, units, states + to);
      std::copy_n(cells + from, units, cells + to);
      for (int gate = 0; gate < 4; ++gate)
        std::fill_n(gates + gate * hidden, units, T(0));
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < units; ++j) {
      lstm_gates<T> x = {gates[j] + bias[j] + product[j],
                         gates[hidden + j] + bias[hidden + j] + product[units + j],
                         gates[2 * hidden + j] + bias[2 * hidden + j] + product[2 * units + j],
                         gates[3 * hidden + j] + bias[3 * hidden + j] + product[3 * units + j]};
      const lstm_peepholes<T> p = {peepholes[j], peepholes[hidden + j], peepholes[2 * hidden + j]};
      T c = cells[from + j];
      states[to + j] = cell.step(x, p, c);
      cells[to + j] = c;
      gates[j] = x.i;
      gates[hidden + j] = x.o;
      gates[2 * hidden + j] = x.f;
      gates[3 * hidden + j] = x.g;
    }
  });
}

template <typename T>
void compute_lstm(RECURRENCE, bool coupled, const T *r, const T *h, const T *c,
                  const lstm_tensors<T> &tensors, T *last_cell, char *scratch) {
  const int64_t state = sizes.batch * sizes.hidden;
  const step_place first = place_of(sizes, reverse, 0),
                   last = place_of(sizes, reverse, sizes.steps - 1);
  std::copy_n(h, state, tensors.states + first.before * state);
  std::copy_n(c, state, tensors.cells + first.before * state);
  with_lstm_cell<T>(sizes, kinds, alphas, betas, clip, reverse, coupled, [&](const auto &cell) {
    const parts<T> all(4, sizes, scratch);
    all.run(
        false, 1, [&](const part<T> &own) { own.pack_rows(r, 4, sizes.hidden, own.r); },
        [&](int64_t step, int, const part<T> &own) {
          const step_place place = place_of(sizes, reverse, step);
          multiply_states(own.rows, 4 * own.units, sizes.hidden,
                          tensors.states + (place.before * sizes.batch + own.row) * sizes.hidden,
                          sizes.hidden, own.r, false, own.product);
          lstm_rows(sizes, tensors, cell, place, own);
        });
  });
  std::copy_n(tensors.cells + last.behind * state, state, last_cell);
}

// dh and dc hold what the step after leaves to this one: of the state, beside the product, and of
// the cell.
template <typename T, typename Cell>
void lstm_gradient_rows(const recurrence_sizes &sizes, const lstm_tensors<T> &tensors,
                        const T *dstates, const Cell &cell, const step_place &place, bool is_first,
                        T *dh, T *dc, const part<T> &own) {
  const int64_t hidden = sizes.hidden, units = own.units;
  const T *peepholes = tensors.peepholes + own.unit;
  if (is_first)
    std::fill_n(own.product, own.rows * whole_vectors(units), T(0));
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const int64_t at = row * hidden + own.unit;
    const int64_t from = place.before * sizes.batch * hidden + at,
                  to = place.behind * sizes.batch * hidden + at;
    T *gates = tensors.gates + (place.at * sizes.batch + row) * 4 * hidden + own.unit;
    const T *product = own.product_row(row, units), *cells = tensors.cells;
    T *of_state = dh + at, *of_cell = dc + at;
    if (place.at >= tensors.lengths[row]) {
      for (int gate = 0; gate < 4; ++gate)
        std::fill_n(gates + gate * hidden, units, T(0));
#pragma omp simd
      for (int64_t j = 0; j < units; ++j)
        of_state[j] += dstates[to + j] + product[j];
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < units; ++j) {
      lstm_gates<T> x = {gates[j], gates[hidden + j], gates[2 * hidden + j], gates[3 * hidden + j]};
      const lstm_peepholes<T> p = {peepholes[j], peepholes[hidden + j], peepholes[2 * hidden + j]};
      T carried = of_cell[j];
      cell.gradient(x, p, cells[from + j], cells[to + j],
                    of_state[j] + (dstates[to + j] + product[j]), carried);
      of_cell[j] = carried;
      of_state[j] = T(0);
      gates[j] = x.i;
      gates[hidden + j] = x.o;
      gates[2 * hidden + j] = x.f;
      gates[3 * hidden + j] = x.g;
    }
  });
}

template <typename T>
void compute_lstm_gradient(RECURRENCE, bool coupled, const T *r, const lstm_tensors<T> &tensors,
                           const T *dstates, const T *dlast_cell, T *dh, T *dc, char *scratch) {
  const int64_t state = sizes.batch * sizes.hidden, steps = sizes.steps;
  std::fill_n(dh, state, T(0));
  std::copy_n(dlast_cell, state, dc);
  with_lstm_cell<T>(sizes, kinds, alphas, betas, clip, reverse, coupled, [&](const auto &cell) {
    const parts<T> all(4, sizes, scratch);
    all.run(
        true, 1,
        [&](const part<T> &own) { own.pack_columns(r, 4 * sizes.hidden, sizes.hidden, own.r); },
        [&](int64_t step, int, const part<T> &own) {
          if (step < steps - 1) // the product of the step after
            multiply_states(own.rows, own.units, 4 * sizes.hidden,
                            tensors.gates +
                                (place_of(sizes, reverse, step + 1).at * sizes.batch + own.row) *
                                    4 * sizes.hidden,
                            4 * sizes.hidden, own.r, false, own.product);
          if (step < 0)
            return add_initial(sizes, dstates + place_of(sizes, reverse, 0).before * state, own,
                               dh);
          lstm_gradient_rows(sizes, tensors, dstates, cell, place_of(sizes, reverse, step),
                             step == steps - 1, dh, dc, own);
        });
  });
}

} // namespace

DEFINE_LSTM(float)
DEFINE_LSTM(double)

} // namespace trainc
