// SPDX-License-Identifier: Apache-2.0
//
// Products by cuBLASLt; what lies between them is a pass over memory.
#include "runtime/cuda/launch.h"
#include "runtime/cuda/sum_of_squares.h"
#include "runtime/kernels/math.h"
#include "runtime/kernels/orthogonalize_forms.h"

namespace trainc {
namespace {

constexpr int block_threads = 256, block_warps = block_threads / 32;
constexpr int64_t most_blocks = 4096;

unsigned blocks_of(int64_t count) {
  const int64_t blocks = (count + block_threads - 1) / block_threads;
  return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

template <typename T>
__device__ void sum_squares(int64_t count, const T *x, double *sums,
                            double (&of_warp)[block_warps]) {
  const int64_t size = (count + orthogonalize_pieces - 1) / orthogonalize_pieces;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * size;
  const int64_t end = begin + size < count ? begin + size : count;
  const double sum = sum_of_squares(x, begin, end, of_warp);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = sum;
}

// A kernel that is not a template has its own shared memory, as the stand-in wants it.
__global__ void sum_squares_f32(int64_t count, const float *x, double *sums) {
  __shared__ double of_warp[block_warps];
  sum_squares(count, x, sums, of_warp);
}
__global__ void sum_squares_f64(int64_t count, const double *x, double *sums) {
  __shared__ double of_warp[block_warps];
  sum_squares(count, x, sums, of_warp);
}
auto squares(const float *) { return sum_squares_f32; }
auto squares(const double *) { return sum_squares_f64; }

__global__ void norm_of_sums(double *sums) {
  double total = 0;
  for (int64_t piece = 0; piece < orthogonalize_pieces; ++piece)
    total += sums[piece];
  const double norm = sqrt(total);
  sums[orthogonalize_pieces] = norm > newton_schulz_least_norm ? norm : newton_schulz_least_norm;
}

template <typename T> __global__ void divide(int64_t count, const double *norm, T *x) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * block_threads;
  const T by = static_cast<T>(*norm);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x; i < count;
       i += step)
    x[i] /= by;
}

template <typename T> __global__ void copy_all(int64_t count, const T *x, T *result) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * block_threads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x; i < count;
       i += step)
    result[i] = x[i];
}

// result = x factor + y other, where the result is x or y.
template <typename T>
__global__ void mix_all(int64_t count, const T *x, T factor, const T *y, T other, T *result) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * block_threads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x; i < count;
       i += step)
    result[i] = x[i] * factor + y[i] * other;
}

template <typename T> void copy_elements(int64_t count, const T *x, T *result) {
  launch("copy of directions", copy_all<T>, {blocks_of(count), block_threads}, count,
         reads(x, count), writes(result, count));
}

template <typename T> void divide_by_norm(int64_t count, T *x, double *sums) {
  launch("sums of a matrix's squares", squares(x),
         {static_cast<unsigned>(orthogonalize_pieces), block_threads}, count,
         reads(static_cast<const T *>(x), count), writes(sums, orthogonalize_pieces));
  launch("norm of a matrix", norm_of_sums, {1, 1}, writes(sums, orthogonalize_pieces + 1));
  launch("matrix over its norm", divide<T>, {blocks_of(count), block_threads}, count,
         reads(static_cast<const double *>(sums + orthogonalize_pieces), 1), writes(x, count));
}

template <typename T>
void mix(int64_t count, const T *x, double factor, const T *y, double other, T *result) {
  launch("sum of two matrices", mix_all<T>, {blocks_of(count), block_threads}, count,
         reads(x, count), static_cast<T>(factor), reads(y, count), static_cast<T>(other),
         writes(result, count));
}

} // namespace

DEFINE_ORTHOGONALIZE

} // namespace trainc
