// SPDX-License-Identifier: Apache-2.0
//
// f32 products are cut into a few large tiles, each one single-threaded call of
// oneDNN's packed product inside our own parallel loop. The grid of tiles is a
// function of the shape, never of the number of threads, and the sum over k
// always goes in order, so the bits depend on the shape alone. f64, which serves tests, is a
// plain blocked loop.
#include "runtime/kernels/matmul.h"
#include "runtime/cpu/one_thread.h"
#include "runtime/kernels/matrix_storage.h"

#include <algorithm>
#include <dnnl.h>
#include <stdexcept>
#include <string>

namespace trainc {

namespace {

struct tile_grid {
  int64_t rows, columns;
};

// Measured with oneDNN 2.6, most shapes by processor time on one core: 2 to 16 tiles stay
// near the best, except that a product with a transposed left side (the gradient of a
// weight) can take twice as long in tiles below 300 Mflop. Not measured beyond 2 cores.
constexpr double tile_flops = 32e6;
constexpr double tile_flops_transposed = 300e6;
constexpr int64_t max_tiles = 16;
constexpr int64_t shortest_side = 128; // of a tile that was cut
// A transposed left side is added up in blocks of k, in order: 1024 x 512 by 1024 takes 6.4 ms in
// place of 8.1 with AVX-512, the same with AVX2.
constexpr int64_t block_k_transposed = 128;

// Cuts the longer of m and n in half as long as the tiles stay worth a call.
tile_grid grid_of(const matmul_shape &shape, int64_t batches) {
  tile_grid grid = {1, 1};
  double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                 static_cast<double>(shape.k);
  int64_t tiles = batches;
  while (tiles * 2 <= max_tiles) {
    // The first cut pays even where a is transposed: two tiles keep two cores busy.
    const bool costly = shape.a.column_stride != 1 && tiles > 1;
    if (flops < 2 * (costly ? tile_flops_transposed : tile_flops))
      break;
    const int64_t tile_m = shape.m / grid.rows, tile_n = shape.n / grid.columns;
    if (std::max(tile_m, tile_n) < 2 * shortest_side)
      break;
    (tile_m >= tile_n ? grid.rows : grid.columns) *= 2;
    tiles *= 2;
    flops /= 2;
  }
  return grid;
}

// Begin of part `index` of `count`, a multiple of 16 elements except at the end.
int64_t part_begin(int64_t size, int64_t count, int64_t index) {
  if (index == count)
    return size;
  const int64_t part = (size / count + 15) / 16 * 16;
  return std::min(size, index * part);
}

void check(dnnl_status_t status) {
  if (status != dnnl_success)
    throw std::runtime_error("oneDNN refused a matrix product, status " +
                             std::to_string(static_cast<int>(status)));
}

struct tile {
  int64_t row, rows, column, columns;
};

void multiply(const matmul_shape &shape, const tile &tile, float beta, const float *a,
              const float *b, float *c) {
  a += tile.row * shape.a.row_stride;
  b += tile.column * shape.b.column_stride;
  c += tile.row * shape.c.row_stride + tile.column * shape.c.column_stride;
  const matrix_storage left = storage_of(shape.a, shape.m, shape.k);
  const matrix_storage right = storage_of(shape.b, shape.k, shape.n);
  const matrix_storage result = storage_of(shape.c, shape.m, shape.n);
  auto flag = [](bool transposed) { return transposed ? 'T' : 'N'; };
  const bool transposed = result.row_major ? !left.row_major : right.row_major;
  for (int64_t l = 0; l == 0 || l < shape.k; l += block_k_transposed) {
    const int64_t k = transposed ? std::min(block_k_transposed, shape.k - l) : shape.k;
    if (result.row_major)
      check(dnnl_sgemm(flag(!left.row_major), flag(!right.row_major), tile.rows, tile.columns, k,
                       1.0f, a, left.leading, b, right.leading, beta, c, result.leading));
    else // the transposed product: c' = b' a'
      check(dnnl_sgemm(flag(right.row_major), flag(left.row_major), tile.columns, tile.rows, k,
                       1.0f, b, right.leading, a, left.leading, beta, c, result.leading));
    if (!transposed)
      return;
    a += k * shape.a.column_stride;
    b += k * shape.b.row_stride;
    beta = 1;
  }
}

void multiply(const matmul_shape &shape, const tile &tile, double beta, const double *a,
              const double *b, double *c) {
  for (int64_t i = tile.row; i < tile.row + tile.rows; ++i)
    for (int64_t j = tile.column; j < tile.column + tile.columns; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < shape.k; ++l)
        sum += a[i * shape.a.row_stride + l * shape.a.column_stride] *
               b[l * shape.b.row_stride + j * shape.b.column_stride];
      double &to = c[i * shape.c.row_stride + j * shape.c.column_stride];
      to = beta == 0 ? sum : to + sum;
    }
}

template <typename T> void run(const matmul_shape &shape, T beta, const T *a, const T *b, T *c) {
  const int64_t batches = batch_count(shape);
  const tile_grid grid = grid_of(shape, batches);
  const int64_t tiles = batches * grid.rows * grid.columns;
  const double flops = 2.0 * static_cast<double>(batches * shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k);
  const bool parallel = tiles > 1 && flops > 1e5;
  const one_thread alone(!parallel);
#pragma omp parallel for schedule(static) if (parallel)
  for (int64_t index = 0; index < tiles; ++index) {
    const int64_t batch = index / (grid.rows * grid.columns);
    const int64_t row = index / grid.columns % grid.rows, column = index % grid.columns;
    tile part;
    part.row = part_begin(shape.m, grid.rows, row);
    part.rows = part_begin(shape.m, grid.rows, row + 1) - part.row;
    part.column = part_begin(shape.n, grid.columns, column);
    part.columns = part_begin(shape.n, grid.columns, column + 1) - part.column;
    if (part.rows > 0 && part.columns > 0)
      multiply(shape, part, beta, a + batch_offset(shape, shape.a, batch),
               b + batch_offset(shape, shape.b, batch), c + batch_offset(shape, shape.c, batch));
  }
}

} // namespace

void matmul(const matmul_shape &shape, const float *a, const float *b, float *c) {
  run(shape, 0.0f, a, b, c);
}
void matmul(const matmul_shape &shape, const double *a, const double *b, double *c) {
  run(shape, 0.0, a, b, c);
}
void matmul_add(const matmul_shape &shape, const float *a, const float *b, float *c) {
  run(shape, 1.0f, a, b, c);
}
void matmul_add(const matmul_shape &shape, const double *a, const double *b, double *c) {
  run(shape, 1.0, a, b, c);
}

} // namespace trainc
