// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/product_rate.h"

#include "runtime/kernels/matmul.h"
#include "runtime/process/clock.h"

#include <algorithm>
#include <cmath>

namespace trainc {
namespace {

constexpr double measured_seconds = 0.05;
constexpr double shortest_seconds = 4e-3; // of a product: below it, starting the threads counts
constexpr int64_t sizes[] = {512, 1024, 2048};

// Of the fastest of some products of two square matrices.
double shortest_product(int64_t size, float *memory) {
  matmul_shape shape;
  shape.m = shape.n = shape.k = size;
  for (matrix_layout *matrix : {&shape.a, &shape.b, &shape.c})
    matrix->row_stride = size;
  const int64_t count = size * size;
  float *a = memory, *b = a + count, *c = b + count;
  std::fill(a, c, 0.5F);
  matmul(shape, a, b, c); // threads and pages are there now
  const double start = seconds_now();
  double before = start, shortest = INFINITY;
  do {
    matmul(shape, a, b, c);
    const double now = seconds_now();
    shortest = std::min(shortest, now - before);
    before = now;
  } while (before - start < measured_seconds);
  return shortest;
}

} // namespace

double measure_product_rate(char *memory, int64_t bytes) {
  double rate = 0, seconds = 0;
  for (const int64_t size : sizes) {
    const auto needed = 3 * size * size * static_cast<int64_t>(sizeof(float));
    if (needed > bytes || seconds >= shortest_seconds)
      break;
    seconds = shortest_product(size, reinterpret_cast<float *>(memory));
    const auto side = static_cast<double>(size);
    rate = std::max(rate, 2 * side * side * side / seconds);
  }
  return rate;
}

} // namespace trainc
