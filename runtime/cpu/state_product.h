// SPDX-License-Identifier: Apache-2.0
//
// The product of a recurrent step: a few rows by a matrix that many steps use, which is packed
// once.
//
// The matrix is cut into panels of three vectors' columns, [k][columns] each, the last filled with
// zeros to a whole vector. A tile of some rows and a panel has its sums in registers, over blocks
// of k that stay in the first cache. Every sum goes through k in order, so the bits of an element
// depend on neither the tile nor the part of the matrix that it is in. One core with AVX-512 does
// 16 x 512 by 512 x 1024 out of its second cache in 90 us, with AVX2 in 140; oneDNN 2.6 takes 107
// and 163.
#pragma once

#include "runtime/cpu/wide_vectors.h"
#include "runtime/kernels/recurrence.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trainc {

// A matrix out of the rows or columns of r, of some units of one gate or of several: element [l, c]
// is at l * row_stride + c / units * gate_stride + c % units * unit_stride.
template <typename T> struct state_matrix {
  const T *elements;
  int64_t units, gate_stride, unit_stride, row_stride;
};

// ---- tiles

constexpr int64_t block_k = 128;        // of a panel: 24 KiB with AVX-512
constexpr int panel_vectors = 3;        // a panel's width
constexpr int64_t prefetched_rows = 16; // of a panel, which comes from the second cache or beyond

// What a tile computes: c [rows, columns of the panel] from a block of k.
template <typename T> struct panel_tile {
  int64_t k;
  const T *a;
  int64_t a_leading;
  const T *panel;
  bool adds;
  T *c;
  int64_t c_leading;
};

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and attributes. A macro, as a
// vector type is lowered where it is written, by the function's own target.
#define DEFINE_TILE(name, attributes, bytes, multiply_add)                                         \
  template <typename T, int rows, int count> attributes void name(const panel_tile<T> &tile) {     \
    typedef T vector __attribute__((vector_size(bytes)));                                          \
    typedef T stored __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));           \
    constexpr int64_t lanes = bytes / sizeof(T), width = count * lanes;                            \
    vector sums[rows][count];                                                                      \
    _Pragma("GCC unroll 8") for (int i = 0; i < rows; ++i) {                                       \
      stored *c = reinterpret_cast<stored *>(tile.c + i * tile.c_leading);                         \
      _Pragma("GCC unroll 3") for (int j = 0; j < count; ++j) {                                    \
        sums[i][j] = tile.adds ? vector(c[j]) : vector{};                                          \
      }                                                                                            \
    }                                                                                              \
    const T *panel = tile.panel, *a = tile.a;                                                      \
    for (int64_t l = 0; l < tile.k; ++l, panel += width) {                                         \
      vector right[count];                                                                         \
      _Pragma("GCC unroll 3") for (int j = 0; j < count; ++j) {                                    \
        __builtin_prefetch(panel + prefetched_rows * width + j * lanes);                           \
        right[j] = reinterpret_cast<const stored *>(panel)[j];                                     \
      }                                                                                            \
      _Pragma("GCC unroll 8") for (int i = 0; i < rows; ++i) {                                     \
        const vector left = a[i * tile.a_leading + l] - vector{};                                  \
        _Pragma("GCC unroll 3") for (int j = 0; j < count; ++j) {                                  \
          sums[i][j] = multiply_add(right[j], left, sums[i][j]);                                   \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
    _Pragma("GCC unroll 8") for (int i = 0; i < rows; ++i) {                                       \
      stored *c = reinterpret_cast<stored *>(tile.c + i * tile.c_leading);                         \
      _Pragma("GCC unroll 3") for (int j = 0; j < count; ++j) { c[j] = sums[i][j]; }               \
    }                                                                                              \
  }
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
DEFINE_TILE(any_tile, , 16, MULTIPLY_ADD)
#if defined(__x86_64__)
DEFINE_TILE(avx2_tile, __attribute__((target("avx2,fma"))), 32, _mm256_fmadd_ps)
DEFINE_TILE(avx512_tile, __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))), 64,
            _mm512_fmadd_ps)
#endif
#undef MULTIPLY_ADD
#undef DEFINE_TILE
// NOLINTEND(bugprone-macro-parentheses)

// Tiles of 1 ... rows by 1 ... panel_vectors vectors.
template <typename T> struct tile_kind {
  int64_t lanes, rows;
  using function = void (*)(const panel_tile<T> &);
  std::array<std::array<function, panel_vectors>, 8> of;

  int64_t width() const { return panel_vectors * lanes; }
};

#define TILE_KIND(T, name, lanes, rows)                                                            \
  []<int... row>(std::integer_sequence<int, row...>) {                                             \
    return tile_kind<T>{                                                                           \
        lanes, rows, {{{name<T, row + 1, 1>, name<T, row + 1, 2>, name<T, row + 1, 3>}...}}};      \
  }                                                                                                \
  (std::make_integer_sequence<int, rows>())

template <typename T> const tile_kind<T> &widest_tiles() {
  static const tile_kind<T> any = TILE_KIND(T, any_tile, 16 / sizeof(T), 4);
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, float>) {
    static const tile_kind<T> avx2 = TILE_KIND(T, avx2_tile, 8, 4),
                              avx512 = TILE_KIND(T, avx512_tile, 16, 8);
    if (widest != vectors::any)
      return widest == vectors::avx2 ? avx2 : avx512;
  }
#endif
  return any;
}
#undef TILE_KIND

// Hands work(at, count, from) the pieces of a panel's row that belong to one gate each: `count`
// elements at `at`, which begin at `from` in the first row of the source.
template <typename T, typename Work>
void for_gates(const state_matrix<T> &b, int64_t first, int64_t columns, Work work) {
  for (int64_t at = 0, count; at < columns; at += count) {
    const int64_t gate = (first + at) / b.units, unit = (first + at) % b.units;
    count = std::min(columns - at, b.units - unit);
    work(at, count, b.elements + gate * b.gate_stride + unit * b.unit_stride);
  }
}

// `panels` has k * whole_vectors(n) elements.
template <typename T> void pack_panels(int64_t n, int64_t k, const state_matrix<T> &b, T *panels) {
  constexpr int64_t block = 16; // rows whose lines of the source stay in the first cache
  const int64_t width = widest_tiles<T>().width(), padded = whole_vectors(n);
  for (int64_t begin = 0; begin < padded; begin += width) {
    const int64_t columns = std::min(width, padded - begin), full = std::min(columns, n - begin);
    T *panel = panels + begin * k;
    for (int64_t row = 0; row < k; row += block)
      for_gates(b, begin, full, [&](int64_t at, int64_t count, const T *from) {
        for (int64_t l = row; l < std::min(k, row + block); ++l)
          for (int64_t j = 0; j < count; ++j)
            panel[l * columns + at + j] = from[l * b.row_stride + j * b.unit_stride];
      });
    for (int64_t l = 0; l < k && full < columns; ++l)
      std::fill_n(panel + l * columns + full, columns - full, T(0));
  }
}

// c = a b, or c + a b; c [m, whole_vectors(n)], contiguous.
template <typename T>
void multiply_states(int64_t m, int64_t n, int64_t k, const T *a, int64_t leading, const T *panels,
                     bool adds, T *c) {
  const tile_kind<T> &tiles = widest_tiles<T>();
  const int64_t padded = whole_vectors(n), count = (m + tiles.rows - 1) / tiles.rows;
  for (int64_t begin = 0; begin < padded; begin += tiles.width()) {
    const int64_t columns = std::min(tiles.width(), padded - begin);
    for (int64_t l = 0; l < k; l += block_k)
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = m * i / count, rows = m * (i + 1) / count - row;
        tiles.of[rows - 1][columns / tiles.lanes - 1](
            {std::min(block_k, k - l), a + row * leading + l, leading,
             panels + begin * k + l * columns, adds || l > 0, c + row * padded + begin, padded});
      }
  }
}

} // namespace trainc
