// SPDX-License-Identifier: Apache-2.0
//
// Updates are sorted by row, stably; then one warp adds up each row's updates in
// ascending order. No other order exists, so the bits are those of a serial loop.
#include "runtime/kernels/scatter_add.h"

#include "runtime/cuda/launch.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/radix_sort.h"
#include "runtime/cuda/wide.h"
#include "runtime/failure.h"
#include "runtime/kernels/scatter_add_forms.h"

#include <bit>

namespace trainc {
namespace {

constexpr int warp_lanes = 32;
constexpr int block_threads = 256;
constexpr int loads_ahead = 8;            // rows on their way to a warp at a time
constexpr int64_t most_rows = UINT32_MAX; // keys and positions have 32 bits

// Rows outside [0, rows) get the key `rows`, after all others.
template <typename Index>
__global__ void key_of_updates(const Index *indices, int64_t count, int64_t rows, uint32_t *keys,
                               uint32_t *positions) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count)
    return;
  const int64_t row = indices[i];
  keys[i] = static_cast<uint32_t>((row < 0) | (row >= rows) ? rows : row);
  positions[i] = static_cast<uint32_t>(i);
}

// Adds to `total` column `column` of the updates whose positions the warp's lanes hold,
// `held` of them. Columns from `columns` on do not exist.
template <typename V>
__device__ V add_updates(V total, const V *updates, int64_t columns, int64_t column,
                         uint32_t position, int held) {
  for (int first = 0; first < held; first += loads_ahead) {
    V values[loads_ahead];
    for (int ahead = 0; ahead < loads_ahead; ++ahead) {
      const uint32_t from = __shfl_sync(0xffffffffu, position, (first + ahead) % warp_lanes);
      if ((first + ahead < held) & (column < columns))
        values[ahead] = updates[from * columns + column];
    }
    for (int ahead = 0; ahead < loads_ahead; ++ahead)
      if ((first + ahead < held) & (column < columns))
        total = plus(total, values[ahead]);
  }
  return total;
}

// A warp for each sorted update; the one at the first update of a row does that row's
// work, for 32 columns of type V. Table and updates have `columns` such columns.
template <typename V>
__global__ void add_sorted_updates(const uint32_t *keys, const uint32_t *positions, int64_t count,
                                   int64_t rows, int64_t columns, const V *updates, V *table) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / warp_lanes;
  if (first >= count)
    return;
  const uint32_t row = keys[first];
  if (row >= rows || (first > 0 && keys[first - 1] == row))
    return;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * warp_lanes + lane;
  V total = {};
  if (column < columns)
    total = table[row * columns + column];
  int held = warp_lanes;
  for (int64_t begin = first; held == warp_lanes; begin += warp_lanes) {
    const int64_t i = begin + lane;
    const bool same = i < count && keys[i] == row;
    held = __popc(__ballot_sync(0xffffffffu, same));
    total = add_updates(total, updates, columns, column, same ? positions[i] : 0, held);
  }
  if (column < columns)
    table[row * columns + column] = total;
}

template <typename V>
void queue_additions(const sorted_positions &sorted, int64_t count, int64_t rows, int64_t columns,
                     const V *updates, V *table) {
  constexpr int block_warps = block_threads / warp_lanes;
  launch("sum of updates by row", add_sorted_updates<V>,
         {static_cast<unsigned>((count + block_warps - 1) / block_warps), block_threads,
          static_cast<unsigned>((columns + warp_lanes - 1) / warp_lanes)},
         reads(sorted.keys, count), reads(sorted.positions, count), count, rows, columns,
         reads(updates, count * columns), writes(table, rows * columns));
}

template <typename Index, typename T>
void add_rows(int64_t count, int64_t rows, int64_t columns, const Index *indices, const T *updates,
              T *table) {
  if (rows > most_rows || count > most_rows)
    throw failure(
        exit_machine,
        format_text("a gradient adds %lld updates to a table of %lld rows; on a GPU there "
                    "may be 2^32 - 1 of each\n  try: trainc --target cpu",
                    static_cast<long long>(count), static_cast<long long>(rows)));
  plan_scratch(radix_sort_bytes(count));
  if (count == 0 || columns == 0)
    return;
  const sort_storage storage(scratch(), count);
  const auto blocks = static_cast<unsigned>((count + block_threads - 1) / block_threads);
  launch("keys of updates", key_of_updates<Index>, {blocks, block_threads}, reads(indices, count),
         count, rows, writes(storage.first.keys, count), writes(storage.first.positions, count));
  const int key_bits = std::bit_width(static_cast<uint64_t>(rows));
  const sorted_positions sorted = queue_radix_sort(storage, count, key_bits);
  using V = typename wide<T>::type;
  constexpr int width = wide<T>::elements;
  if (columns % width == 0 && is_wide_aligned(updates) && is_wide_aligned(table))
    queue_additions(sorted, count, rows, columns / width, reinterpret_cast<const V *>(updates),
                    reinterpret_cast<V *>(table));
  else
    queue_additions(sorted, count, rows, columns, updates, table);
}

template <typename T> void set_zero(int64_t rows, int64_t columns, T *table) {
  if (!only_planning() && rows * columns > 0)
    check_cuda(cudaMemsetAsync(table, 0, static_cast<size_t>(rows * columns) * sizeof(T),
                               compute_stream()),
               "zeroing of a table");
}

} // namespace

DEFINE_SCATTER_ADD

} // namespace trainc
