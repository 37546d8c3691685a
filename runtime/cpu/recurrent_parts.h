// SPDX-License-Identifier: Apache-2.0
//
// What recurrent layers share on the CPU.
//
// A step is a product of the state with r and a loop over the cells. Where the state is long,
// threads share the elements of the state and meet after every step; where r is so small that it
// stays in every core's cache, they share the sequences and never meet. The parts are a function of
// the sizes, and no sum is cut, so the bits depend on the sizes alone. r is copied once per call so
// that each part reads its own as contiguous lines: for 16 x 512 states oneDNN's product then takes
// 27 us instead of 46 for a part of 256 columns, without packing anything (measured with oneDNN 2.6
// on an Intel core with AVX-512; its packed primitive takes 25).
//
// The runtime is built for any x86-64, and these loops are mostly exp: they are compiled for wider
// vectors, too, which gives the same bits.
#pragma once

#include "runtime/cpu/one_thread.h"
#include "runtime/kernels/recurrent_cells.h"

#include <algorithm>
#include <dnnl.h>
#include <stdexcept>

namespace trainc {

#if defined(__x86_64__)
template <typename Work>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void with_avx512(Work work) {
  work();
}
template <typename Work> __attribute__((target("avx2,fma"))) void with_avx2(Work work) { work(); }

enum class vectors { any, avx2, avx512 };
inline const vectors widest =
    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw")
        ? vectors::avx512
    : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? vectors::avx2
                                                                      : vectors::any;

// Runs `work`, a lambda that is always inlined, compiled for this machine. f64 serves tests.
template <typename T, typename Work> void vectorised(Work work) {
  if constexpr (std::is_same_v<T, double>)
    return work();
  widest == vectors::avx512 ? with_avx512(work)
  : widest == vectors::avx2 ? with_avx2(work)
                            : work();
}
#else
template <typename T, typename Work> void vectorised(Work work) { work(); }
#endif

#define INLINED __attribute__((always_inline))

// body(j) for each element of a part's row. A lambda that is INLINED and captures values: what it
// reads by reference would have to stay in memory.
template <typename T, typename Body> void for_units(int64_t units, Body body) {
  vectorised<T>([=]() INLINED {
#pragma omp simd
    for (int64_t j = 0; j < units; ++j)
      body(j);
  });
}

// ---- products

// c [m, n] = a b, or c + a b; b and c have contiguous rows.
inline void multiply_states(int64_t m, int64_t n, int64_t k, const float *a, int64_t leading,
                            const float *b, bool adds, float *c) {
  if (dnnl_sgemm('N', 'N', m, n, k, 1.0f, a, leading, b, n, adds ? 1.0f : 0.0f, c, n) !=
      dnnl_success)
    throw std::runtime_error("oneDNN refused the product of a recurrent step");
}

inline void multiply_states(int64_t m, int64_t n, int64_t k, const double *a, int64_t leading,
                            const double *b, bool adds, double *c) {
  for (int64_t i = 0; i < m; ++i) {
    if (!adds)
      std::fill_n(c + i * n, n, 0.0);
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j)
        c[i * n + j] += a[i * leading + l] * b[l * n + j];
  }
}

// to [k][gates * units]: the transposed rows unit ... of each gate of r [gates * hidden, hidden].
template <typename T>
void copy_transposed(const T *r, int64_t gates, int64_t hidden, int64_t unit, int64_t units,
                     T *to) {
  constexpr int64_t block = 16;
  for (int64_t gate = 0; gate < gates; ++gate)
    for (int64_t k = 0; k < hidden; k += block)
      for (int64_t j = 0; j < units; j += block)
        for (int64_t line = k; line < std::min(k + block, hidden); ++line)
          for (int64_t at = j; at < std::min(j + block, units); ++at)
            to[(line * gates + gate) * units + at] = r[(gate * hidden + unit + at) * hidden + line];
}

// to [rows][units]: columns of r [rows, hidden].
template <typename T>
void copy_columns(const T *r, int64_t rows, int64_t hidden, int64_t unit, int64_t units, T *to) {
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(r + row * hidden + unit, units, to + row * units);
}

// ---- parts

// Sequences and elements of the state that one thread computes, with memory of their own for r
// and for a product.
template <typename T> struct part {
  int64_t row, rows, unit, units;
  T *r, *product;
};

constexpr double smallest_recurrent_part = 1e6; // flops of a step: some ten microseconds
constexpr int64_t most_parts = 16;              // a power of two
constexpr int64_t fewest_units = 32;            // of a part: two vectors
constexpr int64_t fewest_rows = 8;              // of a part: below, a product reads r in vain
constexpr int64_t cached_bytes = 512 * 1024;    // of r, in every core's own cache
constexpr double smallest_parallel = 1e6;       // flops of all steps

template <typename T> class parts {
public:
  parts(int64_t gates, const recurrence_sizes &sizes, char *scratch)
      : gates_(gates), sizes_(sizes), r_(reinterpret_cast<T *>(scratch)),
        product_(r_ + gates * sizes.hidden * sizes.hidden) {
    const double flops = 2.0 * static_cast<double>(gates * sizes.hidden) *
                         static_cast<double>(sizes.hidden * sizes.batch);
    const int64_t bytes = gates * sizes.hidden * sizes.hidden * static_cast<int64_t>(sizeof(T));
    by_rows_ = bytes <= cached_bytes;
    const int64_t most = by_rows_ ? sizes.batch / fewest_rows
                                  : std::min(sizes.hidden / fewest_units,
                                             static_cast<int64_t>(flops / smallest_recurrent_part));
    while (2 * count_ <= std::min(most, most_parts))
      count_ *= 2;
    parallel_ = count_ > 1 && flops * static_cast<double>(sizes.steps) > smallest_parallel;
  }

  // copy(part) once for each copy of r, then work(step, stage, part) for steps in order, all parts
  // of one stage before any of the next. With `back` from the last step to the first, and -1 after
  // it, for the initial state.
  template <typename Copy, typename Work>
  void run(bool back, int stages, Copy copy, Work work) const {
    const int64_t turns = sizes_.steps + (back ? 1 : 0);
    const auto step_of = [&](int64_t turn) { return back ? sizes_.steps - 1 - turn : turn; };
    const one_thread alone(!parallel_);
    if (by_rows_) {
      copy(at(0));
#pragma omp parallel for schedule(static) if (parallel_)
      for (int64_t index = 0; index < count_; ++index)
        for (int64_t turn = 0; turn < turns; ++turn)
          for (int stage = 0; stage < stages; ++stage)
            work(step_of(turn), stage, at(index));
      return;
    }
#pragma omp parallel if (parallel_)
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
    result.product += gates_ * (result.row * sizes_.hidden + sizes_.batch * result.unit);
    return result;
  }

  int64_t begin(int64_t index) const { // multiples of 16 but for the last
    constexpr int64_t multiple = 16;
    return index == count_ ? sizes_.hidden : sizes_.hidden * index / count_ / multiple * multiple;
  }

  int64_t gates_;
  recurrence_sizes sizes_;
  T *r_, *product_;
  bool by_rows_, parallel_;
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
          dstates[row * sizes.hidden + own.unit + j] + own.product[(row - own.row) * own.units + j];
}

} // namespace trainc
