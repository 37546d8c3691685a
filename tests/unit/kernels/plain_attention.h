// SPDX-License-Identifier: Apache-2.0
//
// What attention and its gradient are to compute, by plain loops in f64: for the tests of the CPU's
// and of CUDA's.
#pragma once

#include "runtime/kernels/attention_gradient.h"
#include "runtime/kernels/matrix_storage.h"
#include "runtime/kernels/random.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace trainc {

constexpr float hidden_key = hidden_score<float>;
constexpr int64_t all_keys = 1 << 20;
constexpr int64_t tenth = (1 << dropout_bits) / 10;
constexpr int64_t dropout_key = 77;

struct attention_case {
  int64_t samples, heads, sharing, queries, keys, size, value_size, reach;
  bool has_padding, has_bias; // a mask of samples and keys; one of heads, queries and keys
  bool is_interleaved;        // heads lie side by side
  float hidden = hidden_key;  // what the padding has where it hides a key
  int64_t dropped = 0;        // of 2^dropout_bits weights
  int64_t offset = 0;         // of the elements, in tensors that have as many zeros in front
};

template <typename T> std::vector<T> attention_inputs(int64_t count, uint64_t state) {
  std::vector<T> list;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto number = static_cast<int64_t>(state >> 40) - (1 << 23);
    list.push_back(static_cast<T>(static_cast<float>(number) / (1 << 23)));
  }
  return list;
}

// [samples, heads of keys, sharing], each of rows and columns.
inline matrix_layout layout_of(const attention_case &c, int64_t sharing, int64_t rows,
                               int64_t columns) {
  const int64_t heads = c.heads / c.sharing * sharing,
                head = c.is_interleaved ? columns : rows * columns;
  matrix_layout layout;
  layout.offset = c.offset;
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
    shape.dropout = {12, c.dropped};
    shape.scale = 0.3;
    shape.q = layout_of(c, c.sharing, c.queries, c.size);
    shape.k = layout_of(c, 1, c.keys, c.size);
    shape.v = layout_of(c, 1, c.keys, c.value_size);
    shape.result = layout_of(c, c.sharing, c.queries, c.value_size);
    q = attention_inputs<T>(all * c.queries * c.size, 1);
    k = attention_inputs<T>(c.samples * key_heads * c.keys * c.size, 2);
    v = attention_inputs<T>(c.samples * key_heads * c.keys * c.value_size, 3);
    dresult = attention_inputs<T>(all * c.queries * c.value_size, 4);
    for (std::vector<T> *tensor : {&q, &k, &v, &dresult})
      tensor->insert(tensor->begin(), static_cast<size_t>(c.offset), static_cast<T>(0.0f));
    bias = attention_inputs<sum>(c.heads * matrix, 5);
    padding.assign(static_cast<size_t>(c.samples * c.keys), sum(0));
    for (int64_t key = c.keys / 2; key < c.keys; ++key)
      padding[static_cast<size_t>(key)] = c.hidden; // of the first sample
    if (c.samples > 1)
      std::fill_n(padding.end() - c.keys, c.keys, sum(c.hidden)); // all of the last
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

// Within `bound` of the largest number, as the smallest are differences of large ones. Where all
// are 0, these are differences of numbers of the size `of_zeros`.
inline void expect_close(const char *name, const std::vector<double> &found,
                         const std::vector<double> &expected, double bound, double of_zeros) {
  double largest = 0;
  for (double number : expected)
    largest = std::isfinite(number) ? std::max(largest, std::abs(number)) : largest;
  largest = largest == 0 ? of_zeros : largest;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isinf(expected[i]))
      ASSERT_EQ(found[i], expected[i]) << name << " " << i;
    else
      ASSERT_NEAR(found[i], expected[i], bound * largest) << name << " " << i;
  }
}

inline void expect_close(const attention_numbers &found, const attention_numbers &expected,
                         double bound, double of_zeros, bool has_bias) {
  expect_close("result", found.result, expected.result, bound, of_zeros);
  expect_close("log_sum", found.log_sum, expected.log_sum, bound, of_zeros);
  expect_close("dq", found.dq, expected.dq, bound, of_zeros);
  expect_close("dk", found.dk, expected.dk, bound, of_zeros);
  expect_close("dv", found.dv, expected.dv, bound, of_zeros);
  if (has_bias)
    expect_close("dbias", found.dbias, expected.dbias, bound, of_zeros);
}

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
        all.result[here] += weights[key] * kept(key) * p.v[there];
        all.dv[there] += weights[key] * kept(key) * p.dresult[here];
        slopes[key] += kept(key) * p.dresult[here] * p.v[there];
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

  // What dropout multiplies a weight by.
  double kept(size_t key) const {
    const int64_t row = head * p.shape.sizes.queries + query;
    const auto bits =
        static_cast<int64_t>(random_word(dropout_key, p.shape.dropout.stream,
                                         row * p.shape.sizes.keys + static_cast<int64_t>(key)) >>
                             (64 - dropout_bits));
    const double rest = 1 - std::ldexp(static_cast<double>(p.c.dropped), -dropout_bits);
    return bits < p.c.dropped ? 0 : 1 / rest;
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

template <typename T> attention_numbers plain_attention(const attention_problem<T> &p) {
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

} // namespace trainc
