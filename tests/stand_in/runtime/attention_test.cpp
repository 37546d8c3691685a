// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradient on the device against plain loops in f64: tiles that are full and not,
// strides, masks, shared heads of keys, rows that see no key.
#include "runtime/kernels/attention_gradient.h"

#include "runtime/cuda/streams.h"
#include "runtime/kernels/matrix_storage.h"
#include "tests/stand_in/runtime/device_copy.h"

#include <cmath>
#include <gtest/gtest.h>

namespace trainc {
namespace {

constexpr float hidden_key = -std::numeric_limits<float>::infinity();
constexpr int64_t all_keys = 1 << 20;

struct attention_case {
  int64_t samples, heads, sharing, queries, keys, size, value_size, reach;
  bool has_padding, has_bias; // a mask of samples and keys; one of heads, queries and keys
  bool is_interleaved;        // heads lie side by side
};

template <typename T> std::vector<T> numbers(int64_t count, uint64_t state) {
  std::vector<T> list;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto number = static_cast<int64_t>(state >> 40) - (1 << 23);
    list.push_back(static_cast<T>(static_cast<float>(number) / (1 << 23)));
  }
  return list;
}

// [samples, heads of keys, sharing], each of rows and columns.
matrix_layout layout_of(const attention_case &c, int64_t sharing, int64_t rows, int64_t columns) {
  const int64_t heads = c.heads / c.sharing * sharing,
                head = c.is_interleaved ? columns : rows * columns;
  matrix_layout layout;
  layout.row_stride = c.is_interleaved ? heads * columns : columns;
  layout.batch_strides[0] = heads * rows * columns;
  layout.batch_strides[1] = head * sharing;
  layout.batch_strides[2] = sharing == 1 ? 0 : head;
  return layout;
}

// Everything that a call reads.
template <typename T> struct attention_problem {
  using sum = attention_sum<T>;
  attention_case c;
  attention_shape shape;
  std::vector<T> q, k, v, dresult;
  std::vector<sum> padding, bias;
  std::vector<const std::vector<sum> *> masks;

  explicit attention_problem(const attention_case &of) : c(of) {
    const int64_t key_heads = c.heads / c.sharing, all = c.samples * c.heads,
                  matrix = c.queries * c.keys;
    const matrix_layout of_padding = {0, 0, 1, {c.keys, 0, 0}},
                        of_bias = {0, c.keys, 1, {0, matrix * c.sharing, matrix}};
    shape.sizes = {c.queries, c.keys, c.size, c.value_size, c.sharing, c.reach, 0};
    shape.batch = {{c.samples, key_heads, c.sharing}};
    shape.scale = 0.3;
    shape.q = layout_of(c, c.sharing, c.queries, c.size);
    shape.k = layout_of(c, 1, c.keys, c.size);
    shape.v = layout_of(c, 1, c.keys, c.value_size);
    shape.result = layout_of(c, c.sharing, c.queries, c.value_size);
    q = numbers<T>(all * c.queries * c.size, 1);
    k = numbers<T>(c.samples * key_heads * c.keys * c.size, 2);
    v = numbers<T>(c.samples * key_heads * c.keys * c.value_size, 3);
    dresult = numbers<T>(all * c.queries * c.value_size, 4);
    bias = numbers<sum>(c.heads * matrix, 5);
    padding.assign(static_cast<size_t>(c.samples * c.keys), sum(0));
    for (int64_t key = c.keys / 2; key < c.keys; ++key)
      padding[static_cast<size_t>(key)] = hidden_key; // of the first sample
    if (c.samples > 1)
      std::fill_n(padding.end() - c.keys, c.keys, sum(hidden_key)); // all of the last
    const auto add = [&](const matrix_layout &layout, const std::vector<sum> &mask) {
      shape.masks.of[shape.sizes.masks++] = layout;
      masks.push_back(&mask);
    };
    if (c.has_padding)
      add(of_padding, padding);
    if (c.has_bias)
      add(of_bias, bias);
    shape.masks.of[shape.sizes.masks] = of_bias;
  }
};

struct attention_numbers {
  std::vector<double> result, log_sum, dq, dk, dv, dbias;
};

// One query of one head: its places in the tensors, and what it adds to them.
template <typename T> class plain_row {
public:
  plain_row(const attention_problem<T> &problem, int64_t head, int64_t query)
      : p(problem), head(head), query(query) {}

  void add_to(attention_numbers &all) const {
    const attention_sizes &sizes = p.shape.sizes;
    std::vector<double> weights(static_cast<size_t>(sizes.keys), hidden_key),
        slopes(weights.size());
    double largest = hidden_key, total = 0, mean = 0;
    for (int64_t key = 0; key < std::min(sizes.keys, query + sizes.reach + 1); ++key)
      largest = std::max(largest, weights[static_cast<size_t>(key)] = score(key));
    double &log_sum = all.log_sum[static_cast<size_t>(head * sizes.queries + query)];
    log_sum = std::numeric_limits<double>::infinity();
    if (largest == hidden_key)
      return;
    for (double &weight : weights)
      total += weight = std::exp(weight - largest);
    log_sum = largest + std::log(total);
    for (size_t key = 0; key < weights.size(); ++key) {
      weights[key] /= total;
      for (int64_t d = 0; d < sizes.value_size; ++d) {
        const size_t here = at(p.shape.result, query, d), there = at(p.shape.v, key, d);
        all.result[here] += weights[key] * p.v[there];
        all.dv[there] += weights[key] * p.dresult[here];
        slopes[key] += static_cast<double>(p.dresult[here]) * p.v[there];
      }
      mean += weights[key] * slopes[key];
    }
    for (size_t key = 0; key < weights.size(); ++key) {
      const double slope = weights[key] * (slopes[key] - mean);
      all.dbias[at(p.shape.masks.of[sizes.masks], query, key)] += slope;
      for (int64_t d = 0; d < sizes.size; ++d) {
        const size_t here = at(p.shape.q, query, d), there = at(p.shape.k, key, d);
        all.dq[here] += slope * p.shape.scale * p.k[there];
        all.dk[there] += slope * p.shape.scale * p.q[here];
      }
    }
  }

private:
  size_t at(const matrix_layout &layout, int64_t row, int64_t column) const {
    return static_cast<size_t>(batch_offset(p.shape.batch.of, layout, head) +
                               row * layout.row_stride + column * layout.column_stride);
  }

  double score(int64_t key) const {
    double score = 0;
    for (int64_t d = 0; d < p.c.size; ++d)
      score += static_cast<double>(p.q[at(p.shape.q, query, d)]) * p.k[at(p.shape.k, key, d)];
    score *= p.shape.scale;
    for (size_t i = 0; i < p.masks.size(); ++i)
      score += (*p.masks[i])[at(p.shape.masks.of[i], query, key)];
    return score;
  }

  const attention_problem<T> &p;
  int64_t head, query;
};

template <typename T> attention_numbers plain(const attention_problem<T> &p) {
  attention_numbers all;
  all.result.resize(p.dresult.size());
  all.log_sum.resize(static_cast<size_t>(p.c.samples * p.c.heads * p.c.queries));
  all.dq.resize(p.q.size());
  all.dk.resize(p.k.size());
  all.dv.resize(p.v.size());
  all.dbias.resize(p.bias.size());
  for (int64_t head = 0; head < p.c.samples * p.c.heads; ++head)
    for (int64_t query = 0; query < p.c.queries; ++query)
      plain_row<T>(p, head, query).add_to(all);
  return all;
}

template <typename T> attention_numbers on_device(const attention_problem<T> &p) {
  using sum = attention_sum<T>;
  const auto rows = static_cast<size_t>(p.c.samples * p.c.heads * p.c.queries);
  device_copy<T> q(p.q), k(p.k), v(p.v), dresult(p.dresult), result(p.dresult), dq(p.q), dk(p.k),
      dv(p.v);
  device_copy<sum> padding(p.padding), bias(p.bias), dbias(p.bias),
      log_sum(std::vector<sum>(rows, sum(-1))), scratch(std::vector<sum>(rows, sum(-1)));
  attention_tensors<T> tensors = {q.data(), k.data(), v.data(), {}, result.data(), log_sum.data()};
  for (size_t i = 0; i < p.masks.size(); ++i)
    tensors.masks[i] = p.masks[i] == &p.bias ? bias.data() : padding.data();
  compute_attention<T>(p.shape, true, tensors);
  const attention_gradients<T> gradients = {dresult.data(),
                                            dq.data(),
                                            dk.data(),
                                            dv.data(),
                                            p.c.has_bias ? dbias.data() : nullptr,
                                            reinterpret_cast<char *>(scratch.data())};
  compute_attention_gradient<T>(p.shape, {p.shape.result, p.shape.q, p.shape.k, p.shape.v}, tensors,
                                gradients);
  const auto wide = [](const auto &copy) {
    const auto list = copy.values();
    return std::vector<double>(list.begin(), list.end());
  };
  return {wide(result), wide(log_sum), wide(dq), wide(dk), wide(dv), wide(dbias)};
}

// Of the largest number, as the smallest are differences of large ones.
void expect_close(const char *name, const std::vector<double> &found,
                  const std::vector<double> &expected, double relative) {
  double largest = 0;
  for (double number : expected)
    largest = std::isfinite(number) ? std::max(largest, std::abs(number)) : largest;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isinf(expected[i]))
      ASSERT_EQ(found[i], expected[i]) << name << " " << i;
    else
      ASSERT_NEAR(found[i], expected[i], relative * largest) << name << " " << i;
  }
}

const attention_case attention_cases[] = {
    {1, 1, 1, 1, 1, 1, 1, all_keys, false, false, false},
    {2, 2, 1, 7, 7, 9, 5, 0, false, false, true},
    {1, 2, 1, 65, 65, 64, 64, 0, false, false, true},
    {1, 4, 2, 70, 150, 16, 72, 80, true, false, true},
    {3, 2, 1, 20, 33, 8, 8, all_keys, true, false, false},
    {3, 4, 2, 17, 30, 8, 24, all_keys, true, true, false},
    {1, 2, 1, 40, 130, 12, 8, 90, false, true, true},
    {1, 1, 1, 80, 80, 8, 8, -5, false, false, false},
    {1, 2, 2, 66, 70, 128, 128, 4, false, false, true},
    {1, 1, 1, 10, 66, 200, 140, all_keys, false, true, false},
};

template <typename T> struct attention_test : testing::Test { streams queues; };
using all_types = testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(attention_test, all_types);

TYPED_TEST(attention_test, against_loops) {
  using T = TypeParam;
  const double relative = is_narrow_v<T> ? 2e-2 : std::is_same_v<T, float> ? 2e-6 : 1e-13;
  for (const attention_case &c : attention_cases) {
    SCOPED_TRACE(&c - attention_cases);
    const attention_problem<T> problem(c);
    const attention_numbers expected = plain(problem), found = on_device(problem);
    expect_close("result", found.result, expected.result, relative);
    expect_close("log_sum", found.log_sum, expected.log_sum, relative);
    expect_close("dq", found.dq, expected.dq, relative);
    expect_close("dk", found.dk, expected.dk, relative);
    expect_close("dv", found.dv, expected.dv, relative);
    if (c.has_bias)
      expect_close("dbias", found.dbias, expected.dbias, relative);
  }
}

} // namespace
} // namespace trainc
