// SPDX-License-Identifier: Apache-2.0
//
// Kernels go to the trainer's one stream by trainc::launch.
#include "snake.h"

#include "runtime/cuda/launch.h"
#include "snake_element.h"

namespace {

constexpr int block_threads = 256;

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + block_threads - 1) / block_threads);
}

template <typename T>
__global__ void forward(int64_t elements, int64_t channels, T scale, const T *x, const T *alpha,
                        T *y) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements)
    y[i] = snake_of(scale, x[i], alpha[i % channels]);
}

// A thread for each channel, which adds up in the order of rows.
template <typename T>
__global__ void backward(int64_t rows, int64_t channels, T scale, const T *x, const T *alpha,
                         const T *dy, T *dx, T *dalpha) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels)
    return;
  T sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t i = row * channels + c;
    dx[i] = dy[i] * slope_of_x(scale, x[i], alpha[c]);
    sum += dy[i] * slope_of_alpha(scale, x[i], alpha[c]);
  }
  dalpha[c] = sum;
}

template <typename T>
void queue_forward(int64_t rows, int64_t channels, double scale, const T *x, const T *alpha, T *y) {
  trainc::launch("snake", forward<T>, {blocks_for(rows * channels), block_threads}, rows * channels,
                 channels, static_cast<T>(scale), trainc::reads(x, rows * channels),
                 trainc::reads(alpha, channels), trainc::writes(y, rows * channels));
}

template <typename T>
void queue_backward(int64_t rows, int64_t channels, double scale, const T *x, const T *alpha,
                    const T *dy, T *dx, T *dalpha) {
  trainc::launch("gradient of snake", backward<T>, {blocks_for(channels), block_threads}, rows,
                 channels, static_cast<T>(scale), trainc::reads(x, rows * channels),
                 trainc::reads(alpha, channels), trainc::reads(dy, rows * channels),
                 trainc::writes(dx, rows * channels), trainc::writes(dalpha, channels));
}

} // namespace

void snake(int64_t rows, int64_t channels, double scale, const float *x, const float *alpha,
           float *y) {
  queue_forward(rows, channels, scale, x, alpha, y);
}
void snake(int64_t rows, int64_t channels, double scale, const double *x, const double *alpha,
           double *y) {
  queue_forward(rows, channels, scale, x, alpha, y);
}
void snake_gradient(int64_t rows, int64_t channels, double scale, const float *x,
                    const float *alpha, const float *dy, float *dx, float *dalpha) {
  queue_backward(rows, channels, scale, x, alpha, dy, dx, dalpha);
}
void snake_gradient(int64_t rows, int64_t channels, double scale, const double *x,
                    const double *alpha, const double *dy, double *dx, double *dalpha) {
  queue_backward(rows, channels, scale, x, alpha, dy, dx, dalpha);
}
