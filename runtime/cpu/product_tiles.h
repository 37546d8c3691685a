// SPDX-License-Identifier: Apache-2.0
//
// A matrix product is cut into a few large tiles, each computed by one thread. The grid of tiles is
// a function of the shape, never of the number of threads, and the sum over k is never cut, so the
// bits depend on the shape alone.
#pragma once

#include "runtime/cpu/one_thread.h"
#include "runtime/kernels/matrix_storage.h"

#include <algorithm>

namespace trainc {

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

// Cuts the longer of m and n in half as long as the tiles stay worth a call.
inline tile_grid grid_of(const matmul_shape &shape, int64_t batches) {
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
inline int64_t part_begin(int64_t size, int64_t count, int64_t index) {
  if (index == count)
    return size;
  const int64_t part = (size / count + 15) / 16 * 16;
  return std::min(size, index * part);
}

struct tile {
  int64_t row, rows, column, columns;
};

// The tiles of a product by number: all of the first batch, then those of the next one.
class product_tiles {
public:
  explicit product_tiles(const matmul_shape &shape)
      : shape_(shape), batches_(batch_count(shape)), grid_(grid_of(shape, batches_)) {}

  int64_t count() const { return batches_ * grid_.rows * grid_.columns; }
  int64_t batch(int64_t index) const { return index / (grid_.rows * grid_.columns); }
  // May be empty.
  tile at(int64_t index) const {
    const int64_t row = index / grid_.columns % grid_.rows, column = index % grid_.columns;
    tile part;
    part.row = part_begin(shape_.m, grid_.rows, row);
    part.rows = part_begin(shape_.m, grid_.rows, row + 1) - part.row;
    part.column = part_begin(shape_.n, grid_.columns, column);
    part.columns = part_begin(shape_.n, grid_.columns, column + 1) - part.column;
    return part;
  }

  // Calls work(number) for each that is not empty, on the threads of the team.
  template <typename Work> void for_each(const Work &work) const {
    const int64_t tiles = count();
    const double flops = 2.0 * static_cast<double>(batches_ * shape_.m) *
                         static_cast<double>(shape_.n) * static_cast<double>(shape_.k);
    const bool parallel = tiles > 1 && flops > 1e5;
    const one_thread alone(!parallel);
#pragma omp parallel for schedule(static) if (parallel)
    for (int64_t index = 0; index < tiles; ++index)
      if (const tile part = at(index); part.rows > 0 && part.columns > 0)
        work(index);
  }

private:
  const matmul_shape &shape_;
  int64_t batches_;
  tile_grid grid_;
};

} // namespace trainc
