// SPDX-License-Identifier: Apache-2.0
//
// What recurrent layers share on the CPU.
//
// A step is a product of the state with r (state_product.h) and a loop over the cells. Where the
// state is long, threads share the elements of the state and meet after every step; where r is so
// small that it stays in every core's cache, they share the sequences and never meet. There is a
// part for each thread. No sum is cut, and an element is computed alike in any part, so the bits
// do not depend on the number of threads. r is packed once per call, by each part its own.
#pragma once

#include "runtime/cpu/state_product.h"
#include "runtime/kernels/recurrent_cells.h"

#include <algorithm>
#include <omp.h>

namespace trainc {

// body(row) for each row of a part, in one function with wide vectors: a part's rows are a few
// vectors long, and the constants of exp, tanh and the like are loaded once. A lambda that is
// INLINED and captures values: what it reads by reference would have to stay in memory.
template <typename T, typename Body> void for_rows(int64_t row, int64_t rows, Body body) {
  vectorised<T>([=]() INLINED {
    for (int64_t i = row; i < row + rows; ++i)
      body(i);
  });
}

// ---- parts

// Sequences and elements of the state that one thread computes, with memory of their own for r
// and for a product.
template <typename T> struct part {
  int64_t row, rows, unit, units;
  T *r, *product;

  // Of a product with some columns.
  T *product_row(int64_t of, int64_t columns) const {
    return product + (of - row) * whole_vectors(columns);
  }

  // The transposed rows of these units, of some gates of `from` [gates * hidden, hidden].
  void pack_rows(const T *from, int64_t gates, int64_t hidden, T *to) const {
    pack_panels(gates * units, hidden, {from + unit * hidden, units, hidden * hidden, hidden, 1},
                to);
  }
  // The columns of these units of `from` [rows, hidden].
  void pack_columns(const T *from, int64_t from_rows, int64_t hidden, T *to) const {
    pack_panels(units, from_rows, {from + unit, units, 0, 1, hidden}, to);
  }
};

constexpr double smallest_recurrent_part = 1e6; // flops of a step: some ten microseconds
constexpr int64_t fewest_units = 32;            // of a part: two vectors
constexpr int64_t fewest_rows = 8;              // of a part: below, a product reads r in vain
constexpr int64_t cached_bytes = 512 * 1024;    // of r, in every core's own cache
constexpr double smallest_parallel = 1e6;       // flops of all steps

template <typename T> class parts {
public:
  parts(int64_t gates, const recurrence_sizes &sizes, char *scratch)
      : gates_(gates), sizes_(sizes), r_(reinterpret_cast<T *>(scratch)),
        product_(r_ + gates * sizes.hidden * whole_vectors(sizes.hidden)) {
    const double flops = 2.0 * static_cast<double>(gates * sizes.hidden) *
                         static_cast<double>(sizes.hidden * sizes.batch);
    const int64_t bytes = gates * sizes.hidden * sizes.hidden * static_cast<int64_t>(sizeof(T));
    by_rows_ = bytes <= cached_bytes;
    const int64_t most = by_rows_ ? sizes.batch / fewest_rows
                                  : std::min(sizes.hidden / fewest_units,
                                             static_cast<int64_t>(flops / smallest_recurrent_part));
    if (flops * static_cast<double>(sizes.steps) > smallest_parallel)
      count_ = std::clamp<int64_t>(omp_get_max_threads(), 1, std::max<int64_t>(most, 1));
  }

  // copy(part) once for each copy of r, then work(step, stage, part) for steps in order, all parts
  // of one stage before any of the next. With `back` from the last step to the first, and -1 after
  // it, for the initial state.
  template <typename Copy, typename Work>
  void run(bool back, int stages, Copy copy, Work work) const {
    const int64_t turns = sizes_.steps + (back ? 1 : 0);
    const auto step_of = [&](int64_t turn) { return back ? sizes_.steps - 1 - turn : turn; };
    if (by_rows_) {
      copy(at(0));
#pragma omp parallel for schedule(static) num_threads(count_)
      for (int64_t index = 0; index < count_; ++index)
        for (int64_t turn = 0; turn < turns; ++turn)
          for (int stage = 0; stage < stages; ++stage)
            work(step_of(turn), stage, at(index));
      return;
    }
#pragma omp parallel num_threads(count_)
    {
#pragma omp for schedule(static)
      for (int64_t index = 0; index < count_; ++index)
        copy(at(index));
      for (int64_t turn = 0; turn < turns; ++turn)
        for (int stage = 0; stage < stages; ++stage)
#pragma omp for schedule(static)
          for (int64_t index = 0; index < count_; ++index)
            work(step_of(turn), stage, at(index));
    }
  }

private:
  part<T> at(int64_t index) const {
    part<T> result = {0, sizes_.batch, 0, sizes_.hidden, r_, product_};
    if (by_rows_) {
      result.row = sizes_.batch * index / count_;
      result.rows = sizes_.batch * (index + 1) / count_ - result.row;
    } else {
      result.unit = begin(index);
      result.units = begin(index + 1) - result.unit;
      result.r += gates_ * sizes_.hidden * result.unit;
    }
    result.product +=
        result.row * whole_vectors(gates_ * sizes_.hidden) + gates_ * sizes_.batch * result.unit;
    return result;
  }

  int64_t begin(int64_t index) const { // multiples of 16 except the last
    constexpr int64_t multiple = 16;
    return index == count_ ? sizes_.hidden : sizes_.hidden * index / count_ / multiple * multiple;
  }

  int64_t gates_;
  recurrence_sizes sizes_;
  T *r_, *product_;
  bool by_rows_;
  int64_t count_ = 1;
};

inline bool is_usual(const cell_activations &kinds, double clip, activation f, activation g,
                     activation h) {
  return clip == 0 && static_cast<activation>(kinds.of[0]) == f &&
         static_cast<activation>(kinds.of[1]) == g && static_cast<activation>(kinds.of[2]) == h;
}

// Adds to dh what the first step's gradient and the initial state's own make of it; the part's
// product is that of the first step.
template <typename T>
void add_initial(const recurrence_sizes &sizes, const T *dstates, const part<T> &own, T *dh) {
  for (int64_t row = own.row; row < own.row + own.rows; ++row)
    for (int64_t j = 0; j < own.units; ++j)
      dh[row * sizes.hidden + own.unit + j] +=
          dstates[row * sizes.hidden + own.unit + j] + own.product_row(row, own.units)[j];
}

} // namespace trainc
