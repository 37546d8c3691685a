// SPDX-License-Identifier: Apache-2.0
//
// GRU and its gradient, on parts of the state or of the batch (recurrent_parts.h).
#include "runtime/kernels/gru.h"

#include "runtime/cpu/recurrent_parts.h"

namespace trainc {
namespace {

template <typename T, typename Work> void with_gru_cell(RECURRENCE, Work work) {
  (void)sizes, (void)reverse;
  if (is_usual(kinds, clip, activation::sigmoid, activation::tanh, activation()))
    return work(gru_cell<T, sigmoid_gate, tanh_gate>{{sigmoid_gate(), 0}, {tanh_gate(), 0}});
  using any = any_gate<T>;
  work(gru_cell<T, any, any>{{any_gate_of<T>(kinds, alphas, betas, 0), clip},
                             {any_gate_of<T>(kinds, alphas, betas, 1), clip}});
}

template <typename T> struct gru_tensors {
  const T *bias;
  const int64_t *lengths;
  T *states, *gates, *candidates;
};

// A row of a part at one step.
template <typename T> struct gru_row {
  gru_row(const recurrence_sizes &sizes, const gru_tensors<T> &tensors, const step_place &place,
          const part<T> &own, int64_t row)
      : from(tensors.states + (place.before * sizes.batch + row) * sizes.hidden + own.unit),
        to(tensors.states + (place.behind * sizes.batch + row) * sizes.hidden + own.unit),
        z(tensors.gates + (place.at * sizes.batch + row) * 3 * sizes.hidden + own.unit),
        r(z + sizes.hidden), n(r + sizes.hidden),
        candidates(tensors.candidates +
                   (place.at * sizes.batch + row) * sizes.hidden * (tensors.candidates ? 1 : 0) +
                   (tensors.candidates ? own.unit : 0)),
        active(place.at < tensors.lengths[row]) {}

  const T *from;
  T *to, *z, *r, *n, *candidates;
  bool active;
};

template <typename T, typename Cell>
void linear_gru_rows(const recurrence_sizes &sizes, const gru_tensors<T> &tensors, const Cell &cell,
                     const step_place &place, const part<T> &own) {
  const int64_t hidden = sizes.hidden, units = own.units;
  const T *bias = tensors.bias + own.unit;
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const gru_row<T> at(sizes, tensors, place, own, row);
    const T *product = own.product_row(row, 3 * units);
    if (!at.active) {
      std::copy_n(at.from, units, at.to);
      for (T *unused : {at.z, at.r, at.n, at.candidates})
        std::fill_n(unused, units, T(0));
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < units; ++j) {
      const T z = cell.gate.value(at.z[j] + bias[j] + product[j]);
      const T r = cell.gate.value(at.r[j] + bias[hidden + j] + product[units + j]);
      const T q = product[2 * units + j] + bias[3 * hidden + j];
      const T n = cell.candidate.value(at.n[j] + bias[2 * hidden + j] + r * q);
      at.to[j] = cell.mixed(z, n, at.from[j]);
      at.candidates[j] = q;
      at.z[j] = z;
      at.r[j] = r;
      at.n[j] = n;
    }
  });
}

template <typename T, typename Cell>
void gru_gate_rows(const recurrence_sizes &sizes, const gru_tensors<T> &tensors, const Cell &cell,
                   const step_place &place, const part<T> &own) {
  const int64_t units = own.units;
  const T *bias = tensors.bias + own.unit;
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const gru_row<T> at(sizes, tensors, place, own, row);
    const T *product = own.product_row(row, 2 * units);
    if (!at.active) {
      for (T *unused : {at.z, at.r, at.candidates})
        std::fill_n(unused, units, T(0));
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < units; ++j) {
      at.z[j] = cell.gate.value(at.z[j] + bias[j] + product[j]);
      at.r[j] = cell.gate.value(at.r[j] + bias[sizes.hidden + j] + product[units + j]);
      at.candidates[j] = at.r[j] * at.from[j];
    }
  });
}

template <typename T, typename Cell>
void gru_candidate_rows(const recurrence_sizes &sizes, const gru_tensors<T> &tensors,
                        const Cell &cell, const step_place &place, const part<T> &own) {
  const int64_t hidden = sizes.hidden, units = own.units;
  const T *bias = tensors.bias + 2 * hidden + own.unit;
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const gru_row<T> at(sizes, tensors, place, own, row);
    const T *product = own.product_row(row, units);
    if (!at.active) {
      std::copy_n(at.from, units, at.to);
      std::fill_n(at.n, units, T(0));
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < units; ++j) {
      at.n[j] = cell.candidate.value(at.n[j] + bias[j] + bias[hidden + j] + product[j]);
      at.to[j] = cell.mixed(at.z[j], at.n[j], at.from[j]);
    }
  });
}

template <typename T>
void compute_gru(RECURRENCE, bool linear, const T *r, const T *h, const gru_tensors<T> &tensors,
                 char *scratch) {
  const int64_t hidden = sizes.hidden;
  std::copy_n(h, sizes.batch * hidden,
              tensors.states + place_of(sizes, reverse, 0).before * sizes.batch * hidden);
  const auto candidate_panels = [&](const part<T> &own) {
    return own.r + hidden * whole_vectors(2 * own.units);
  };
  with_gru_cell<T>(sizes, kinds, alphas, betas, clip, reverse, [&](const auto &cell) {
    const parts<T> all(3, sizes, scratch);
    all.run(
        false, linear ? 1 : 2,
        [&](const part<T> &own) {
          own.pack_rows(r, linear ? 3 : 2, hidden, own.r);
          if (!linear)
            own.pack_rows(r + 2 * hidden * hidden, 1, hidden, candidate_panels(own));
        },
        [&](int64_t step, int stage, const part<T> &own) {
          const step_place place = place_of(sizes, reverse, step);
          if (stage == 0)
            multiply_states(own.rows, (linear ? 3 : 2) * own.units, hidden,
                            tensors.states + (place.before * sizes.batch + own.row) * hidden,
                            hidden, own.r, false, own.product);
          else
            multiply_states(own.rows, own.units, hidden,
                            tensors.candidates + (place.at * sizes.batch + own.row) * hidden,
                            hidden, candidate_panels(own), false, own.product);
          if (linear)
            linear_gru_rows(sizes, tensors, cell, place, own);
          else if (stage == 0)
            gru_gate_rows(sizes, tensors, cell, place, own);
          else
            gru_candidate_rows(sizes, tensors, cell, place, own);
        });
  });
}

// The gradient up to the product with r's last block, or all of it where r is linear.
template <typename T, typename Cell>
void gru_gradient_rows(const recurrence_sizes &sizes, const gru_tensors<T> &tensors,
                       const T *dstates, const Cell &cell, const step_place &place, bool is_first,
                       T *dh, const part<T> &own) {
  const int64_t units = own.units;
  const bool linear = tensors.candidates;
  if (is_first)
    std::fill_n(own.product, own.rows * whole_vectors(units), T(0));
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const gru_row<T> at(sizes, tensors, place, own, row);
    const T *product = own.product_row(row, units);
    const T *given = dstates + (at.to - tensors.states);
    T *of_state = dh + row * sizes.hidden + own.unit;
#pragma omp simd
    for (int64_t j = 0; j < units; ++j)
      of_state[j] += given[j] + product[j];
    if (!at.active) {
      for (T *unused : {at.z, at.r, at.n})
        std::fill_n(unused, units, T(0));
      if (linear)
        std::fill_n(at.candidates, units, T(0));
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < units; ++j) {
      const T z = at.z[j], n = at.n[j], total = of_state[j];
      at.z[j] = cell.of_update(z, n, at.from[j], total);
      at.n[j] = cell.of_candidate(z, n, total);
      of_state[j] = total * z;
    }
    if (!linear)
      return;
#pragma omp simd
    for (int64_t j = 0; j < units; ++j) {
      const T r = at.r[j];
      at.r[j] = at.n[j] * at.candidates[j] * cell.gate.slope(r);
      at.candidates[j] = at.n[j] * r;
    }
  });
}

// What is left of it: the part's product is the gradient of r h.
template <typename T, typename Cell>
void gru_reset_gradient_rows(const recurrence_sizes &sizes, const gru_tensors<T> &tensors,
                             const Cell &cell, const step_place &place, T *dh, const part<T> &own) {
  for_rows<T>(own.row, own.rows, [=](int64_t row) INLINED {
    const gru_row<T> at(sizes, tensors, place, own, row);
    const T *product = own.product_row(row, own.units);
    T *of_state = dh + row * sizes.hidden + own.unit;
    if (!at.active)
      return;
#pragma omp simd
    for (int64_t j = 0; j < own.units; ++j) {
      const T r = at.r[j];
      of_state[j] += product[j] * r;
      at.r[j] = product[j] * at.from[j] * cell.gate.slope(r);
    }
  });
}

template <typename T>
void compute_gru_gradient(RECURRENCE, const T *r, const gru_tensors<T> &tensors, const T *dstates,
                          T *dh, char *scratch) {
  const int64_t hidden = sizes.hidden, batch = sizes.batch;
  const bool linear = tensors.candidates;
  std::fill_n(dh, batch * hidden, T(0));
  with_gru_cell<T>(sizes, kinds, alphas, betas, clip, reverse, [&](const auto &cell) {
    const parts<T> all(3, sizes, scratch);
    const auto candidate_panels = [&](const part<T> &own) {
      return own.r + 2 * hidden * whole_vectors(own.units);
    };
    const auto gates_of = [&](int64_t step, const part<T> &own) {
      return tensors.gates + (place_of(sizes, reverse, step).at * batch + own.row) * 3 * hidden;
    };
    all.run(
        true, linear ? 1 : 2,
        [&](const part<T> &own) {
          own.pack_columns(r, 2 * hidden, hidden, own.r);
          own.pack_columns(r + 2 * hidden * hidden, hidden, hidden, candidate_panels(own));
        },
        [&](int64_t step, int stage, const part<T> &own) {
          const step_place place = place_of(sizes, reverse, std::max<int64_t>(step, 0));
          if (stage == 1) {
            if (step < 0)
              return;
            multiply_states(own.rows, own.units, hidden, gates_of(step, own) + 2 * hidden,
                            3 * hidden, candidate_panels(own), false, own.product);
            return gru_reset_gradient_rows(sizes, tensors, cell, place, dh, own);
          }
          if (step < sizes.steps - 1) {
            multiply_states(own.rows, own.units, 2 * hidden, gates_of(step + 1, own), 3 * hidden,
                            own.r, false, own.product);
            if (linear)
              multiply_states(own.rows, own.units, hidden,
                              tensors.candidates +
                                  (place_of(sizes, reverse, step + 1).at * batch + own.row) *
                                      hidden,
                              hidden, candidate_panels(own), true, own.product);
          }
          if (step < 0)
            return add_initial(sizes, dstates + place.before * batch * hidden, own, dh);
          gru_gradient_rows(sizes, tensors, dstates, cell, place, step == sizes.steps - 1, dh, own);
        });
  });
}

} // namespace

DEFINE_GRU(float)
DEFINE_GRU(double)

} // namespace trainc
