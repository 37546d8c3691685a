// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradient against plain loops in f64: tiles that are full and not, strides,
// masks, dropout, rows that see no key, single queries and keys, odd sizes; the same bits for any
// number of threads. Against loops seven of the cases for each type, LONG=1: all.
#include "tests/unit/kernels/plain_attention.h"
#include "tests/unit/sample.h"

#include <cstring>
#include <omp.h>

namespace {

using namespace trainc;

template <typename T> attention_numbers on_cpu(const attention_problem<T> &p, int threads) {
  using sum = attention_sum<T>;
  omp_set_num_threads(threads);
  const attention_case &c = p.c;
  const attention_shape &of = p.shape;
  std::vector<T> y(p.dresult.size(), T(NAN)), dq(p.q.size(), T(NAN)), dk(p.k.size(), T(NAN)),
      dv(p.v.size(), T(NAN));
  std::vector<sum> log_sum(static_cast<size_t>(c.samples * c.heads * c.queries), sum(NAN)),
      dbias(p.bias.size(), sum(NAN));
  const int64_t key_heads = c.heads / c.sharing;
  const attention_split split(of.sizes, c.has_bias ? key_heads : c.samples * key_heads,
                              c.has_bias ? c.samples : 1);
  std::vector<char> scratch(
      static_cast<size_t>(split.scratch_bytes(static_cast<int64_t>(dq.size() * sizeof(sum)),
                                              static_cast<int64_t>(dbias.size() * sizeof(sum)))));
  const auto call = [&](auto... masks_and_key) {
    attention(of.sizes, of.batch, of.dropout, of.scale, true, of.q, of.k, of.v, of.result, of.masks,
              p.q.data(), p.k.data(), p.v.data(), masks_and_key..., y.data(), log_sum.data());
    const auto backward = [&](auto... others) {
      attention_gradient(of.sizes, of.batch, of.dropout, of.scale, of.q, of.k, of.v, of.result,
                         of.result, of.q, of.k, of.v, of.masks, p.q.data(), p.k.data(), p.v.data(),
                         static_cast<const T *>(y.data()), static_cast<const sum *>(log_sum.data()),
                         p.dresult.data(), masks_and_key..., dq.data(), dk.data(), dv.data(),
                         others..., scratch.data());
    };
    c.has_bias ? backward(dbias.data()) : backward();
  };
  const auto call_with = [&](auto... masks) {
    c.dropped > 0 ? call(masks..., &dropout_key) : call(masks...);
  };
  const sum *padding = p.padding.data(), *bias = p.bias.data();
  if (c.has_padding && c.has_bias)
    call_with(padding, bias);
  else if (c.has_padding)
    call_with(padding);
  else if (c.has_bias)
    call_with(bias);
  else
    call_with();
  const auto wide = [](const auto &list) { return std::vector<double>(list.begin(), list.end()); };
  return {wide(y), wide(log_sum), wide(dq), wide(dk), wide(dv), wide(dbias)};
}

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
    // a mask that is finite, and hides all keys of the last sample: its weights are the same for
    // all
    {3, 4, 2, 140, 300, 8, 24, all_keys, true, false, true, std::numeric_limits<float>::lowest()},
    {2, 2, 1, 9, 20, 5, 3, 11, true, false, false, -1e30f},
    {2, 2, 1, 140, 257, 13, 1, 116, true, true, true},
    {2, 3, 1, 129, 17, 33, 31, -100, false, true, false},
    // dropout
    {2, 3, 1, 129, 300, 8, 8, 171, false, false, true, hidden_key, tenth},
    {3, 4, 2, 70, 270, 8, 24, all_keys, true, true, true, hidden_key, 7 * tenth},
    {1, 2, 1, 5, 9, 4, 4, all_keys, true, false, false, hidden_key, 1 << dropout_bits},
};

template <typename T> void check_attention(double relative) {
  for (const size_t i : sample_of(7, std::size(attention_cases))) {
    SCOPED_TRACE(i);
    const attention_case &c = attention_cases[i];
    const attention_problem<T> problem(c);
    expect_close(on_cpu(problem, 1), plain_attention(problem), relative, 1, c.has_bias);
  }
}

TEST(kernels_attention, f32_against_loops) { check_attention<float>(2e-6); }
TEST(kernels_attention, f64_against_loops) { check_attention<double>(1e-13); }
TEST(kernels_attention, bf16_against_loops) { check_attention<bfloat16>(2e-2); }
TEST(kernels_attention, f16_against_loops) { check_attention<float16>(3e-3); }

template <typename T> void check_threads() {
  for (const attention_case &c : attention_cases) {
    const attention_problem<T> problem(c);
    const attention_numbers one = on_cpu(problem, 1);
    for (int threads : {2, 3}) {
      const attention_numbers other = on_cpu(problem, threads);
      for (auto part :
           {&attention_numbers::result, &attention_numbers::log_sum, &attention_numbers::dq,
            &attention_numbers::dk, &attention_numbers::dv, &attention_numbers::dbias})
        ASSERT_EQ(std::memcmp((one.*part).data(), (other.*part).data(),
                              (one.*part).size() * sizeof(double)),
                  0);
    }
  }
}

TEST(kernels_attention, same_bits_of_f32_for_any_threads) { check_threads<float>(); }
TEST(kernels_attention, same_bits_of_bf16_for_any_threads) { check_threads<bfloat16>(); }

} // namespace
