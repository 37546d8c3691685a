// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradient on the device against plain loops in f64: tiles that are full and not,
// strides, masks, dropout, shared heads of keys, rows that see no key; each size of a head that has
// kernels of its own with each kind of mask, for one query, around a tile and for many tiles. Some
// of the cases for each type, LONG=1: all.
#include "tests/unit/kernels/plain_attention.h"
#include "tests/unit/sample.h"

#include "runtime/cuda/streams.h"
#include "tests/stand_in/runtime/device_copy.h"

namespace trainc {
namespace {

template <typename T> attention_numbers on_device(const attention_problem<T> &p) {
  using sum = attention_sum<T>;
  const auto rows = static_cast<size_t>(p.c.samples * p.c.heads * p.c.queries);
  device_copy<T> q(p.q), k(p.k), v(p.v), dresult(p.dresult), result(p.dresult), dq(p.q), dk(p.k),
      dv(p.v);
  device_copy<sum> padding(p.padding), bias(p.bias), dbias(p.bias),
      log_sum(std::vector<sum>(rows, sum(-1))), scratch(std::vector<sum>(2 * rows, sum(-1)));
  device_copy<int64_t> key(std::vector<int64_t>{dropout_key});
  attention_tensors<T> tensors = {q.data(),      k.data(),       v.data(), {},
                                  result.data(), log_sum.data(), nullptr};
  if (p.c.dropped > 0)
    tensors.key = key.data();
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
    // a mask that is finite, and hides all keys of the last sample
    {3, 4, 2, 70, 150, 8, 24, all_keys, true, false, true, std::numeric_limits<float>::lowest()},
    {2, 2, 1, 9, 20, 5, 3, 11, true, false, false, -1e30f},
    // dropout
    {2, 3, 1, 70, 150, 8, 8, 80, false, false, true, hidden_key, tenth},
    {3, 4, 2, 66, 70, 8, 24, all_keys, true, true, true, hidden_key, 7 * tenth},
    // several tiles of queries and of keys, with and without rows that see none of them
    {1, 2, 1, 150, 200, 64, 64, 40, false, false, true},
    {1, 1, 1, 140, 80, 64, 64, -70, false, false, false},
    {1, 2, 2, 70, 100, 96, 128, 20, false, false, true},
    // masks whose pairs of keys are aligned, and such that are not
    {2, 2, 1, 70, 150, 64, 64, 80, true, true, true},
    {2, 2, 1, 40, 66, 80, 128, all_keys, true, false, false, std::numeric_limits<float>::lowest()},
    {1, 2, 1, 40, 67, 64, 64, 30, false, true, true},
    // dropout of heads with tensor cores, and tensors that no wide access suits
    {1, 2, 2, 40, 70, 128, 128, 30, false, true, true, hidden_key, tenth},
    {1, 2, 1, 70, 70, 64, 64, 0, false, false, true, hidden_key, 0, 1},
};

constexpr int64_t head_sizes[] = {32, 45, 64, 80, 96, 128};
constexpr int64_t lengths[] = {1, 63, 64, 65, 1000};
enum mask_kind : uint8_t { causal, padded, additive, shared_keys, kinds };

attention_case case_of(int64_t size, int64_t length, int kind) {
  attention_case c = {1, 2, 1, length, length, size, size, all_keys, false, false, true};
  if (kind == causal)
    c.reach = 0;
  c.has_padding = kind == padded;
  c.has_bias = kind == additive;
  if (kind == shared_keys)
    c.sharing = 2;
  return c;
}

void expect_equal(const attention_numbers &a, const attention_numbers &b) {
  EXPECT_EQ(a.result, b.result);
  EXPECT_EQ(a.log_sum, b.log_sum);
  EXPECT_EQ(a.dq, b.dq);
  EXPECT_EQ(a.dk, b.dk);
  EXPECT_EQ(a.dv, b.dv);
  EXPECT_EQ(a.dbias, b.dbias);
}

template <typename T> struct attention_test : testing::Test {
  void check(const attention_case &c, double of_zeros) {
    const double relative = std::is_same_v<T, bfloat16> ? 2e-2
                            : is_narrow_v<T>            ? 3e-3
                            : std::is_same_v<T, float>  ? 2e-6
                                                        : 1e-13;
    const attention_problem<T> problem(c);
    expect_close(on_device(problem), plain_attention(problem), relative, of_zeros, c.has_bias);
  }
  streams queues;
};
using all_types = testing::Types<float, double, bfloat16, float16>;
TYPED_TEST_SUITE(attention_test, all_types);

TYPED_TEST(attention_test, against_loops) {
  for (const size_t i : sample_of(5, std::size(attention_cases))) {
    SCOPED_TRACE(i);
    this->check(attention_cases[i], 0);
  }
}

TYPED_TEST(attention_test, same_bits) {
  const attention_problem<TypeParam> problem({1, 2, 2, 70, 66, 64, 64, 10, false, true, true});
  expect_equal(on_device(problem), on_device(problem));
}

// Queries end within a fragment, and what is beyond would weigh infinitely much. Of f32 the scores
// have too few bits for the bound.
TYPED_TEST(attention_test, mask_that_raises_keys) {
  if (is_narrow_v<TypeParam>)
    this->check({1, 2, 1, 40, 66, 64, 64, all_keys, true, false, false, 200.0f}, 0);
}

TYPED_TEST(attention_test, every_size_and_mask) {
  std::vector<attention_case> cases;
  for (const int64_t length : lengths)
    for (const int64_t size : head_sizes)
      for (int kind = 0; kind < kinds; ++kind)
        cases.push_back(case_of(size, length, kind));
  // The longest, which take the stand-in minutes, only where all are wanted.
  for (const size_t i : sample_of(3, cases.size(), std::size(head_sizes) * kinds)) {
    SCOPED_TRACE(testing::Message()
                 << "case " << i << ", length " << cases[i].queries << ", size " << cases[i].size);
    this->check(cases[i], 1); // the gradient of a score is 0 where there is one key
  }
}

} // namespace
} // namespace trainc
