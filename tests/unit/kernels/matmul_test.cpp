// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and scatters: against plain loops in f64, over layouts and odd
// sizes, and the same bits for every number of threads.
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/scatter_add.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <omp.h>
#include <vector>

namespace {

using trainc::matmul_shape;

std::vector<float> random_numbers(size_t count, uint64_t state) {
  std::vector<float> list(count);
  for (float &x : list) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(static_cast<int64_t>(state >> 40) - (1 << 23)) / (1 << 23);
  }
  return list;
}

matmul_shape make_shape(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b,
                        int64_t batch = 1) {
  matmul_shape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.batch[0] = batch;
  shape.a.row_stride = transpose_a ? 1 : k;
  shape.a.column_stride = transpose_a ? m : 1;
  shape.b.row_stride = transpose_b ? 1 : n;
  shape.b.column_stride = transpose_b ? k : 1;
  shape.c.row_stride = n;
  shape.a.batch_strides[0] = m * k;
  shape.b.batch_strides[0] = k * n;
  shape.c.batch_strides[0] = m * n;
  return shape;
}

std::vector<float> run(const matmul_shape &shape, const std::vector<float> &a,
                       const std::vector<float> &b, size_t size, int threads) {
  std::vector<float> c(size, NAN);
  omp_set_num_threads(threads);
  trainc::matmul(shape, a.data(), b.data(), c.data());
  return c;
}

TEST(kernels_matmul, against_loops) {
  for (int64_t batch : {1, 3})
    for (auto [m, n, k] :
         {std::tuple{1, 1, 1}, {7, 5, 3}, {1, 33, 17}, {64, 1, 19}, {130, 70, 65}, {40, 33, 300}})
      for (int layout = 0; layout < 4; ++layout) {
        const bool ta = layout & 1, tb = layout & 2;
        const matmul_shape shape = make_shape(m, n, k, ta, tb, batch);
        const auto a = random_numbers(batch * m * k, 1), b = random_numbers(batch * k * n, 2);
        std::vector<float> c = run(shape, a, b, batch * m * n, 2);
        for (int64_t g = 0; g < batch; ++g)
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0;
              for (int64_t l = 0; l < k; ++l)
                sum += static_cast<double>(
                           a[g * m * k + i * shape.a.row_stride + l * shape.a.column_stride]) *
                       b[g * k * n + l * shape.b.row_stride + j * shape.b.column_stride];
              ASSERT_NEAR(c[g * m * n + i * n + j], sum, 1e-7 * static_cast<double>(k) + 1e-6);
            }
        std::vector<float> twice = c;
        trainc::matmul_add(shape, a.data(), b.data(), twice.data());
        for (size_t i = 0; i < c.size(); ++i)
          ASSERT_NEAR(twice[i], 2 * c[i], 1e-5);
      }
}

TEST(kernels_matmul, f64) {
  const matmul_shape shape = make_shape(9, 6, 11, true, false);
  std::vector<double> a(99), b(66), c(54, NAN);
  for (int i = 0; i < 99; ++i)
    a[i] = i % 7 - 3;
  for (int i = 0; i < 66; ++i)
    b[i] = i % 5 - 2;
  trainc::matmul(shape, a.data(), b.data(), c.data());
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 6; ++j) {
      double sum = 0;
      for (int l = 0; l < 11; ++l)
        sum += a[l * 9 + i] * b[l * 6 + j];
      EXPECT_EQ(c[i * 6 + j], sum);
    }
}

// Shapes of a transformer: forward, gradients of inputs and of weights, attention, logits.
TEST(kernels_matmul, same_bits_with_any_threads) {
  struct shape_case {
    int64_t m, n, k;
    bool ta, tb;
    int64_t batch;
  };
  for (auto [m, n, k, ta, tb, batch] : {shape_case{256, 768, 768, false, false, 1},
                                        {256, 3072, 768, false, false, 1},
                                        {256, 5003, 768, false, true, 1},
                                        {256, 768, 5003, false, false, 1},
                                        {768, 3072, 256, true, false, 1},
                                        {5003, 768, 256, true, false, 1},
                                        {64, 64, 64, false, true, 48},
                                        {257, 131, 1030, false, false, 2}}) {
    const matmul_shape shape = make_shape(m, n, k, ta, tb, batch);
    const auto a = random_numbers(batch * m * k, 3), b = random_numbers(batch * k * n, 4);
    const std::vector<float> one = run(shape, a, b, batch * m * n, 1);
    for (int threads : {2, 3, 8}) {
      const std::vector<float> many = run(shape, a, b, batch * m * n, threads);
      EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0)
          << m << " x " << n << " x " << k << " with " << threads << " threads";
    }
  }
}

// Tensors of a fused product: rows inside wider rows, transposed results.
TEST(kernels_matmul, strided_views) {
  matmul_shape shape = make_shape(6, 4, 5, false, false);
  shape.a.row_stride = 15;
  shape.a.offset = 5;
  shape.c.row_stride = 1;
  shape.c.column_stride = 6;
  const auto a = random_numbers(90, 5), b = random_numbers(20, 6);
  const std::vector<float> c = run(shape, a, b, 24, 2);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 4; ++j) {
      float sum = 0;
      for (int l = 0; l < 5; ++l)
        sum += a[5 + i * 15 + l] * b[l * 4 + j];
      EXPECT_NEAR(c[j * 6 + i], sum, 1e-5);
    }
}

// A transposed left side is added up in blocks; so is the right one of a transposed result.
TEST(kernels_matmul, blocks_of_k_in_a_transposed_result) {
  constexpr int64_t m = 6, n = 4, k = 300;
  matmul_shape shape = make_shape(m, n, k, false, false);
  const auto a = random_numbers(m * k, 5), b = random_numbers(k * n, 6);
  const std::vector<float> plain = run(shape, a, b, m * n, 2);
  shape.c.row_stride = 1;
  shape.c.column_stride = m;
  const std::vector<float> transposed = run(shape, a, b, m * n, 2);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      EXPECT_NEAR(transposed[j * m + i], plain[i * n + j], 1e-5);
}

TEST(kernels_scatter_add, repeated_indexes_in_order) {
  constexpr int64_t count = 100, rows = 7, columns = 301;
  std::vector<int64_t> indices(count);
  for (int64_t i = 0; i < count; ++i)
    indices[i] = i * i % 9 - 1; // -1 and 7 lie outside and are skipped
  const auto updates = random_numbers(count * columns, 7);
  std::vector<float> expected(rows * columns, 0.0f), init = random_numbers(rows * columns, 8);
  std::vector<float> added = init;
  for (int64_t i = 0; i < count; ++i)
    if (indices[i] >= 0 && indices[i] < rows)
      for (int64_t j = 0; j < columns; ++j) {
        expected[indices[i] * columns + j] += updates[i * columns + j];
        added[indices[i] * columns + j] += updates[i * columns + j];
      }
  for (int threads : {1, 3}) {
    omp_set_num_threads(threads);
    std::vector<float> table(rows * columns, NAN), onto = init;
    trainc::scatter_add_from_zero(count, rows, columns, indices.data(), updates.data(),
                                  table.data());
    trainc::scatter_add(count, rows, columns, indices.data(), updates.data(), onto.data());
    EXPECT_EQ(table, expected);
    EXPECT_EQ(onto, added);
  }
}

} // namespace
