// SPDX-License-Identifier: Apache-2.0
#include "snake.h"

#include "snake_element.h"

namespace {

template <typename T>
void forward(int64_t rows, int64_t channels, double scale, const T *x, const T *alpha, T *y) {
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < channels; ++c)
      y[row * channels + c] = snake_of(static_cast<T>(scale), x[row * channels + c], alpha[c]);
}

// A channel's sum is added up by one thread in the order of rows: the bits are the same with any
// number of threads.
template <typename T>
void backward(int64_t rows, int64_t channels, double scale, const T *x, const T *alpha, const T *dy,
              T *dx, T *dalpha) {
#pragma omp parallel for
  for (int64_t c = 0; c < channels; ++c) {
    T sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t i = row * channels + c;
      dx[i] = dy[i] * slope_of_x(static_cast<T>(scale), x[i], alpha[c]);
      sum += dy[i] * slope_of_alpha(static_cast<T>(scale), x[i], alpha[c]);
    }
    dalpha[c] = sum;
  }
}

} // namespace

void snake(int64_t rows, int64_t channels, double scale, const float *x, const float *alpha,
           float *y) {
  forward(rows, channels, scale, x, alpha, y);
}
void snake(int64_t rows, int64_t channels, double scale, const double *x, const double *alpha,
           double *y) {
  forward(rows, channels, scale, x, alpha, y);
}
void snake_gradient(int64_t rows, int64_t channels, double scale, const float *x,
                    const float *alpha, const float *dy, float *dx, float *dalpha) {
  backward(rows, channels, scale, x, alpha, dy, dx, dalpha);
}
void snake_gradient(int64_t rows, int64_t channels, double scale, const double *x,
                    const double *alpha, const double *dy, double *dx, double *dalpha) {
  backward(rows, channels, scale, x, alpha, dy, dx, dalpha);
}
