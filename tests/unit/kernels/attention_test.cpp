// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradient against plain loops in f64: tiles that are full and not, strides,
// masks, rows that see no key, single queries and keys, odd sizes; the same bits for any number of
// threads.
#include "runtime/kernels/attention_gradient.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <omp.h>
#include <vector>

namespace {

using namespace trainc;

constexpr float hidden_key = -std::numeric_limits<float>::infinity();

struct attention_case {
  int64_t samples, heads, sharing, queries, keys, size, value_size, reach;
  bool has_padding, has_bias; // a mask of samples and keys; one of heads, queries and keys
  bool is_interleaved;        // heads lie side by side, queries, keys and values in one matrix
};

std::vector<double> attention_numbers(int64_t count, uint64_t state) {
  std::vector<double> list;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    list.push_back(static_cast<double>(static_cast<int64_t>(state >> 40) - (1 << 23)) / (1 << 23));
  }
  return list;
}

template <typename T> std::vector<T> rounded_to(const std::vector<double> &numbers) {
  std::vector<T> list;
  for (double number : numbers)
    list.emplace_back(static_cast<float>(number));
  return list;
}

// One tensor of [samples, heads, rows, columns], contiguous or with heads side by side.
matrix_layout layout_of(const attention_case &of, int64_t heads, int64_t sharing, int64_t rows,
                        int64_t columns) {
  matrix_layout layout;
  const bool beside = of.is_interleaved;
  layout.row_stride = beside ? heads * columns : columns;
  const int64_t head = beside ? columns : rows * columns;
  layout.batch_strides[0] = heads * rows * columns;
  layout.batch_strides[1] = head * sharing;
  layout.batch_strides[2] = sharing == 1 ? 0 : head;
  return layout;
}

struct plain_result {
  std::vector<double> result, log_sum, dq, dk, dv, dbias;
};

template <typename T> class attention_check {
  using sum = attention_sum<T>;

public:
  explicit attention_check(const attention_case &of) : c(of) {
    const int64_t key_heads = c.heads / c.sharing;
    sizes = {c.queries,
             c.keys,
             c.size,
             c.value_size,
             c.sharing,
             c.reach,
             int(c.has_padding) + int(c.has_bias)};
    batch = {{c.samples, key_heads, c.sharing}};
    q = layout_of(c, c.heads, c.sharing, c.queries, c.size);
    result = layout_of(c, c.heads, c.sharing, c.queries, c.value_size);
    k = layout_of(c, key_heads, 1, c.keys, c.size);
    v = layout_of(c, key_heads, 1, c.keys, c.value_size);
    const int64_t all = c.samples * c.heads;
    of_q = rounded_to<T>(attention_numbers(all * c.queries * c.size, 1));
    of_k = rounded_to<T>(attention_numbers(c.samples * key_heads * c.keys * c.size, 2));
    of_v = rounded_to<T>(attention_numbers(c.samples * key_heads * c.keys * c.value_size, 3));
    dresult = rounded_to<T>(attention_numbers(all * c.queries * c.value_size, 4));
    bias = rounded_to<sum>(attention_numbers(c.heads * c.queries * c.keys, 5));
    padding.assign(static_cast<size_t>(c.samples * c.keys), sum(0));
    for (int64_t key = c.keys / 2; key < c.keys && c.has_padding; ++key)
      padding[static_cast<size_t>(key)] = hidden_key; // of the first sample
    if (c.has_padding && c.samples > 1)
      std::fill_n(padding.end() - c.keys, c.keys, sum(hidden_key)); // all of the last
  }

  plain_result run(int threads) const {
    omp_set_num_threads(threads);
    std::vector<T> y(dresult.size(), T(NAN)), dq(of_q.size(), T(NAN)), dk(of_k.size(), T(NAN)),
        dv(of_v.size(), T(NAN));
    std::vector<sum> log_sum(static_cast<size_t>(c.samples * c.heads * c.queries), sum(NAN)),
        dbias(bias.size(), sum(NAN));
    const int64_t key_heads = c.heads / c.sharing;
    const attention_split split(sizes, c.has_bias ? key_heads : c.samples * key_heads,
                                c.has_bias ? c.samples : 1);
    std::vector<char> scratch(
        static_cast<size_t>(split.scratch_bytes(static_cast<int64_t>(dq.size() * sizeof(sum)),
                                                static_cast<int64_t>(bias.size() * sizeof(sum)))));
    const matrix_layout padding_layout = {0, 0, 1, {c.keys, 0, 0}};
    const int64_t matrix = c.queries * c.keys;
    const matrix_layout bias_layout = {0, c.keys, 1, {0, matrix * c.sharing, matrix}};
    attention_masks masks;
    int count = 0;
    if (c.has_padding)
      masks.of[count++] = padding_layout;
    if (c.has_bias)
      masks.of[count++] = bias_layout;
    masks.of[count] = bias_layout;
    const auto forward = [&](auto... of_masks) {
      attention(sizes, batch, scale, true, q, k, v, result, masks, of_q.data(), of_k.data(),
                of_v.data(), of_masks..., y.data(), log_sum.data());
    };
    const auto backward = [&](auto... others) {
      attention_gradient(sizes, batch, scale, q, k, v, result, result, q, k, v, masks, of_q.data(),
                         of_k.data(), of_v.data(), static_cast<const T *>(y.data()),
                         static_cast<const sum *>(log_sum.data()), dresult.data(), others...);
    };
    if (c.has_padding && c.has_bias) {
      forward(padding.data(), bias.data());
      backward(padding.data(), bias.data(), dq.data(), dk.data(), dv.data(), dbias.data(),
               scratch.data());
    } else if (c.has_padding) {
      forward(padding.data());
      backward(padding.data(), dq.data(), dk.data(), dv.data(), scratch.data());
    } else if (c.has_bias) {
      forward(bias.data());
      backward(bias.data(), dq.data(), dk.data(), dv.data(), dbias.data(), scratch.data());
    } else {
      forward();
      backward(dq.data(), dk.data(), dv.data(), scratch.data());
    }
    const auto wide = [](const auto &list) {
      return std::vector<double>(list.begin(), list.end());
    };
    return {wide(y), wide(log_sum), wide(dq), wide(dk), wide(dv), wide(dbias)};
  }

  plain_result plain() const {
    plain_result p;
    p.result.resize(dresult.size());
    p.log_sum.resize(static_cast<size_t>(c.samples * c.heads * c.queries));
    p.dq.resize(of_q.size());
    p.dk.resize(of_k.size());
    p.dv.resize(of_v.size());
    p.dbias.resize(bias.size());
    for (int64_t sample = 0; sample < c.samples; ++sample)
      for (int64_t head = 0; head < c.heads; ++head)
        for (int64_t query = 0; query < c.queries; ++query)
          add_row(p, sample, head, query);
    return p;
  }

private:
  size_t at(const matrix_layout &layout, int64_t sample, int64_t head, int64_t row,
            int64_t column) const {
    return static_cast<size_t>(
        sample * layout.batch_strides[0] + head / c.sharing * layout.batch_strides[1] +
        head % c.sharing * layout.batch_strides[2] + row * layout.row_stride + column);
  }

  void add_row(plain_result &p, int64_t sample, int64_t head, int64_t query) const {
    std::vector<double> weights(static_cast<size_t>(c.keys), hidden_key);
    double largest = hidden_key, total = 0;
    for (int64_t key = 0; key < c.keys && key <= query + c.reach; ++key) {
      double score = 0;
      for (int64_t d = 0; d < c.size; ++d)
        score += static_cast<double>(of_q[at(q, sample, head, query, d)]) *
                 static_cast<double>(of_k[at(k, sample, head, key, d)]);
      score *= scale;
      if (c.has_padding)
        score += padding[static_cast<size_t>(sample * c.keys + key)];
      if (c.has_bias)
        score += bias[static_cast<size_t>((head * c.queries + query) * c.keys + key)];
      weights[static_cast<size_t>(key)] = score;
      largest = std::max(largest, score);
    }
    const auto row = static_cast<size_t>((sample * c.heads + head) * c.queries + query);
    p.log_sum[row] = std::numeric_limits<double>::infinity();
    if (largest == hidden_key)
      return;
    for (double &weight : weights)
      total += weight = std::exp(weight - largest);
    p.log_sum[row] = largest + std::log(total);
    std::vector<double> slopes(weights.size());
    double mean = 0;
    for (size_t key = 0; key < weights.size(); ++key) {
      weights[key] /= total;
      for (int64_t d = 0; d < c.value_size; ++d) {
        const size_t here = at(result, sample, head, query, d),
                     there = at(v, sample, head, static_cast<int64_t>(key), d);
        p.result[here] += weights[key] * of_v[there];
        p.dv[there] += weights[key] * dresult[here];
        slopes[key] += static_cast<double>(dresult[here]) * static_cast<double>(of_v[there]);
      }
      mean += weights[key] * slopes[key];
    }
    for (size_t key = 0; key < weights.size(); ++key) {
      const double slope = weights[key] * (slopes[key] - mean);
      p.dbias[static_cast<size_t>(head * c.queries + query) * weights.size() + key] += slope;
      for (int64_t d = 0; d < c.size; ++d) {
        const size_t here = at(q, sample, head, query, d),
                     there = at(k, sample, head, static_cast<int64_t>(key), d);
        p.dq[here] += slope * scale * of_k[there];
        p.dk[there] += slope * scale * of_q[here];
      }
    }
  }

  attention_case c;
  double scale = 0.3;
  attention_sizes sizes;
  attention_batch batch;
  matrix_layout q, k, v, result;
  std::vector<T> of_q, of_k, of_v, dresult;
  std::vector<sum> padding, bias;
};

// Of the largest number, as the smallest are differences of large ones. Where all are 0, these are
// differences of numbers of the inputs' size, 1.
void expect_close(const std::vector<double> &found, const std::vector<double> &expected,
                  double relative) {
  double largest = 0;
  for (double number : expected)
    largest = std::isfinite(number) ? std::max(largest, std::abs(number)) : largest;
  largest = largest == 0 ? 1 : largest;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isinf(expected[i]))
      ASSERT_EQ(found[i], expected[i]) << i;
    else
      ASSERT_NEAR(found[i], expected[i], relative * largest) << i;
  }
}

constexpr int64_t all_keys = 1 << 20;

const attention_case attention_cases[] = {
    {1, 1, 1, 1, 1, 1, 1, all_keys, false, false, false},
    {2, 2, 1, 7, 7, 9, 5, 0, false, false, true},
    {2, 3, 1, 65, 65, 8, 8, 0, false, false, true},
    {1, 2, 1, 129, 129, 12, 7, 0, false, false, true},
    {2, 4, 2, 130, 270, 16, 20, 140, true, false, true},
    {3, 2, 1, 20, 33, 8, 8, all_keys, true, false, false},
    {5, 4, 2, 17, 30, 8, 8, all_keys, true, true, false},
    {2, 3, 1, 300, 530, 8, 8, 229, false, true, true},
    {2, 2, 1, 40, 40, 8, 8, -5, false, false, false},
    {1, 1, 1, 600, 600, 8, 8, 0, false, false, true},
    {1, 1, 1, 60, 1100, 8, 8, all_keys, false, true, false},
    {1, 3, 1, 1, 1, 64, 64, 0, false, false, true},
    {2, 2, 1, 1, 300, 5, 3, all_keys, true, true, true},
    {3, 2, 2, 3, 1, 1, 1, all_keys, true, false, true},
    {2, 2, 1, 140, 257, 13, 1, 116, true, true, true},
    {2, 3, 1, 129, 17, 33, 31, -100, false, true, false},
};

template <typename T> void check_attention(double relative) {
  for (const attention_case &c : attention_cases) {
    const attention_check<T> check(c);
    const plain_result expected = check.plain(), found = check.run(1);
    expect_close(found.result, expected.result, relative);
    expect_close(found.log_sum, expected.log_sum, relative);
    expect_close(found.dq, expected.dq, relative);
    expect_close(found.dk, expected.dk, relative);
    expect_close(found.dv, expected.dv, relative);
    if (c.has_bias)
      expect_close(found.dbias, expected.dbias, relative);
  }
}

TEST(kernels_attention, f32_against_loops) { check_attention<float>(2e-6); }
TEST(kernels_attention, f64_against_loops) { check_attention<double>(1e-13); }
TEST(kernels_attention, bf16_against_loops) { check_attention<bfloat16>(2e-2); }
TEST(kernels_attention, f16_against_loops) { check_attention<float16>(3e-3); }

template <typename T> void check_threads() {
  for (const attention_case &c : attention_cases) {
    const attention_check<T> check(c);
    const plain_result one = check.run(1);
    for (int threads : {2, 3}) {
      const plain_result other = check.run(threads);
      for (auto part : {&plain_result::result, &plain_result::log_sum, &plain_result::dq,
                        &plain_result::dk, &plain_result::dv, &plain_result::dbias})
        ASSERT_EQ(std::memcmp((one.*part).data(), (other.*part).data(),
                              (one.*part).size() * sizeof(double)),
                  0);
    }
  }
}

TEST(kernels_attention, same_bits_of_f32_for_any_threads) { check_threads<float>(); }
TEST(kernels_attention, same_bits_of_bf16_for_any_threads) { check_threads<bfloat16>(); }

} // namespace
