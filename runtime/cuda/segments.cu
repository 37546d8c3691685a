// SPDX-License-Identifier: Apache-2.0
//
// A block sums a piece of a segment; one thread per segment then adds up its pieces in order.
#include "runtime/kernels/segments.h"

#include "runtime/cuda/launch.h"
#include "runtime/cuda/sum_of_squares.h"
#include "runtime/kernels/math.h"
#include "runtime/kernels/segments_forms.h"

namespace trainc {
namespace {

constexpr int block_threads = 256, block_warps = block_threads / 32;
constexpr unsigned broadcast_blocks = 64; // along a segment, or the gap in front of it
constexpr unsigned part_blocks = 64;      // of a part of a table

template <typename T>
__device__ void sum_piece(int64_t pieces, const T *x, const int64_t *segments, double *sums,
                          double (&of_warp)[block_warps]) {
  const int64_t s = blockIdx.x, piece = blockIdx.y;
  const int64_t begin = segments[2 * s], end = segments[2 * s + 1];
  const int64_t size = (end - begin + pieces - 1) / pieces;
  const int64_t first = begin + piece * size;
  const int64_t last = first + size < end ? first + size : end;
  const double sum = sum_of_squares(x, first, last, of_warp);
  if (threadIdx.x == 0)
    sums[s * pieces + piece] = sum;
}

// A kernel that is not a template has its own shared memory, as the stand-in wants it.
__global__ void sum_pieces_f32(int64_t pieces, const float *x, const int64_t *segments,
                               double *sums) {
  __shared__ double of_warp[block_warps];
  sum_piece(pieces, x, segments, sums, of_warp);
}
__global__ void sum_pieces_f64(int64_t pieces, const double *x, const int64_t *segments,
                               double *sums) {
  __shared__ double of_warp[block_warps];
  sum_piece(pieces, x, segments, sums, of_warp);
}

auto sum_pieces(const float *) { return sum_pieces_f32; }
auto sum_pieces(const double *) { return sum_pieces_f64; }

__global__ void root_of_sums(int64_t count, int64_t pieces, const double *sums, double *norms) {
  const int64_t s = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (s >= count)
    return;
  double total = 0;
  for (int64_t piece = 0; piece < pieces; ++piece)
    total += sums[s * pieces + piece];
  norms[s] = sqrt(total);
}

// Block row s writes segment s and the gap in front of it; the last one, after all segments,
// what is left.
template <typename T>
__global__ void spread(int64_t count, int64_t elements, const T *values, const int64_t *segments,
                       T *result) {
  const int64_t s = blockIdx.x;
  const int64_t from = s == 0 ? 0 : segments[2 * s - 1];
  const int64_t begin = s < count ? segments[2 * s] : elements;
  const int64_t end = s < count ? segments[2 * s + 1] : elements;
  const T value = s < count ? values[s] : T(0);
  const int64_t step = static_cast<int64_t>(gridDim.y) * block_threads;
  for (int64_t i = from + static_cast<int64_t>(blockIdx.y) * block_threads + threadIdx.x; i < end;
       i += step)
    result[i] = i < begin ? T(0) : value;
}

template <typename T> __global__ void fill_with_zeros(int64_t elements, T *result) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * block_threads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x; i < elements;
       i += step)
    result[i] = T(0);
}

// A block has a line that lies in memory element by element; of others each thread has one.
template <typename T>
__device__ void mean_squares_of_part(const T *x, const int64_t *table, T *result,
                                     double (&of_warp)[block_warps]) {
  const int64_t *row = table + blockIdx.x * mean_squares_columns;
  const int64_t kept = row[3], kept_stride = row[4], reduced = row[5], reduced_stride = row[6];
  const int64_t lines = row[2] * kept;
  const int thread = static_cast<int>(threadIdx.x);
  const bool is_shared = reduced_stride == 1 && reduced > 1;
  const int64_t at =
      is_shared ? blockIdx.y : static_cast<int64_t>(blockIdx.y) * block_threads + thread;
  const int64_t step = static_cast<int64_t>(gridDim.y) * (is_shared ? 1 : block_threads);
  for (int64_t line = at; line < lines; line += step) {
    const T *first = x + row[0] + line / kept * kept * reduced + line % kept * kept_stride;
    double sum = 0;
    if (is_shared) {
      sum = sum_of_squares(first, 0, reduced, of_warp);
      __syncthreads();
    }
    for (int64_t k = 0; k < reduced && !is_shared; ++k) {
      const double value = first[k * reduced_stride];
      sum += value * value;
    }
    if (!is_shared || thread == 0)
      result[row[1] + line] = static_cast<T>(sum / static_cast<double>(reduced));
  }
}

__global__ void mean_squares_f32(const float *x, const int64_t *table, float *result) {
  __shared__ double of_warp[block_warps];
  mean_squares_of_part(x, table, result, of_warp);
}
__global__ void mean_squares_f64(const double *x, const int64_t *table, double *result) {
  __shared__ double of_warp[block_warps];
  mean_squares_of_part(x, table, result, of_warp);
}
auto mean_squares(const float *) { return mean_squares_f32; }
auto mean_squares(const double *) { return mean_squares_f64; }

// Every block of a part sums its rows' factors anew: they are few beside the products.
template <typename T>
__device__ void multiply_part(const T *row, const T *column, const T *least, const int64_t *table,
                              T *result, double (&of_warp)[block_warps]) {
  const int64_t *part = table + blockIdx.x * product_columns;
  const int64_t rows = part[4], columns = part[5];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * block_threads + thread;
  const int64_t step = static_cast<int64_t>(gridDim.y) * block_threads;
  for (int64_t o = 0; o < part[3]; ++o) {
    const T *of_row = row + part[1] + o * rows;
    T *to = result + part[0] + o * rows * columns;
    if (part[2] < 0) {
      for (int64_t i = first; i < rows; i += step)
        to[i] = of_row[i];
      continue;
    }
    double sum = 0;
    for (int64_t r = thread; r < rows; r += block_threads)
      sum += static_cast<double>(of_row[r]);
    const double found = sum_of_block(sum, of_warp) / static_cast<double>(rows), bound = *least;
    const double mean = found > bound ? found : bound;
    __syncthreads();
    const T *of_column = column + part[2] + o * columns;
    for (int64_t i = first; i < rows * columns; i += step)
      to[i] = static_cast<T>(static_cast<double>(of_row[i / columns]) / mean *
                             static_cast<double>(of_column[i % columns]));
  }
}

__global__ void multiply_parts_f32(const float *row, const float *column, const float *least,
                                   const int64_t *table, float *result) {
  __shared__ double of_warp[block_warps];
  multiply_part(row, column, least, table, result, of_warp);
}
__global__ void multiply_parts_f64(const double *row, const double *column, const double *least,
                                   const int64_t *table, double *result) {
  __shared__ double of_warp[block_warps];
  multiply_part(row, column, least, table, result, of_warp);
}
auto multiply_parts(const float *) { return multiply_parts_f32; }
auto multiply_parts(const double *) { return multiply_parts_f64; }

template <typename T> void write_zeros(int64_t elements, T *result) {
  launch("zeros", fill_with_zeros<T>, {part_blocks * part_blocks, block_threads}, elements,
         writes(result, elements));
}

template <typename T>
void find_mean_squares(int64_t count, int64_t size, int64_t elements, const T *x,
                       const int64_t *table, T *result) {
  write_zeros(elements, result);
  launch("means of squares", mean_squares(x),
         {static_cast<unsigned>(count), block_threads, part_blocks}, reads(x, size),
         reads(table, count * mean_squares_columns), writes(result, elements));
}

template <typename T>
void multiply_rows(int64_t count, int64_t row_size, int64_t column_size, int64_t elements,
                   const T *row, const T *column, const T *least, const int64_t *table, T *result) {
  write_zeros(elements, result);
  launch("products of rows and columns", multiply_parts(row),
         {static_cast<unsigned>(count), block_threads, part_blocks}, reads(row, row_size),
         reads(column, column_size), reads(least, 1), reads(table, count * product_columns),
         writes(result, elements));
}

template <typename T>
void find_norms(int64_t count, int64_t pieces, int64_t elements, const T *x,
                const int64_t *segments, double *norms, double *sums) {
  launch("sums of squares by segment", sum_pieces(x),
         {static_cast<unsigned>(count), block_threads, static_cast<unsigned>(pieces)}, pieces,
         reads(x, elements), reads(segments, 2 * count), writes(sums, count * pieces));
  launch("norms by segment", root_of_sums,
         {static_cast<unsigned>((count + block_threads - 1) / block_threads), block_threads}, count,
         pieces, reads(sums, count * pieces), writes(norms, count));
}

template <typename T>
void spread_values(int64_t count, int64_t elements, const T *values, const int64_t *segments,
                   T *result) {
  launch("numbers by segment", spread<T>,
         {static_cast<unsigned>(count + 1), block_threads, broadcast_blocks}, count, elements,
         reads(values, count), reads(segments, 2 * count), writes(result, elements));
}

} // namespace

DEFINE_SEGMENTS

} // namespace trainc
