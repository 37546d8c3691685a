// SPDX-License-Identifier: Apache-2.0
//
// A block sums a piece of a segment by a fixed tree over its threads; one thread per segment
// then adds up its pieces in order.
#include "runtime/kernels/segments.h"

#include "runtime/cuda/launch.h"
#include "runtime/kernels/math.h"
#include "runtime/kernels/segments_forms.h"

namespace trainc {
namespace {

constexpr int block_threads = 256;
constexpr unsigned broadcast_blocks = 64; // along a segment, or the gap in front of it

// `partial` is the block's, an element per thread.
template <typename T>
__device__ void sum_piece(int64_t pieces, const T *x, const int64_t *segments, double *sums,
                          double *partial) {
  const int64_t s = blockIdx.x, piece = blockIdx.y;
  const int64_t begin = segments[2 * s], end = segments[2 * s + 1];
  const int64_t size = (end - begin + pieces - 1) / pieces;
  const int64_t first = begin + piece * size;
  const int64_t last = first + size < end ? first + size : end;
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (int64_t i = first + thread; i < last; i += block_threads) {
    const double value = x[i];
    sum += value * value;
  }
  partial[thread] = sum;
  for (int width = block_threads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (thread < width)
      partial[thread] += partial[thread + width];
  }
  if (thread == 0)
    sums[s * pieces + piece] = partial[0];
}

// A kernel that is no template has its own shared memory, as the stand-in wants it.
__global__ void sum_pieces_f32(int64_t pieces, const float *x, const int64_t *segments,
                               double *sums) {
  __shared__ double partial[block_threads];
  sum_piece(pieces, x, segments, sums, partial);
}
__global__ void sum_pieces_f64(int64_t pieces, const double *x, const int64_t *segments,
                               double *sums) {
  __shared__ double partial[block_threads];
  sum_piece(pieces, x, segments, sums, partial);
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

// Block row s writes segment s and the gap in front of it; the last one, behind all segments,
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
