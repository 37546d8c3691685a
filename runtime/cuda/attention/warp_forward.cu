// SPDX-License-Identifier: Apache-2.0
//
// Attention on tensor cores (warp_rows.h): a block has some queries of one head and goes through
// the keys and values, with a softmax that corrects what it has so far.
#include "runtime/cuda/attention/extents.h"
#include "runtime/cuda/attention/forward.h"
#include "runtime/cuda/attention/warp_choice.h"
#include "runtime/cuda/kernels/exp2.h"

namespace trainc {
namespace {

// Queries of one head, by the block's threads: each has two rows of every strip, and of each row
// the columns that the fragments give it.
template <typename Rows> struct attending_queries {
  using T = typename Rows::element;
  static constexpr int strips = Rows::strips, groups = Rows::far_rows / 16;
  using all_scores = typename Rows::pair_sums[groups];

  const attention_shape &shape;
  int first; // query of the block
  head_masks<float> masks;
  head_dropout<float> dropout;
  typename Rows::fragments q;
  typename Rows::row_sums result = {};
  // Of each row; if plain the largest product, else the largest score. A sum is that of this
  // thread's columns.
  float largest[strips][2], sum[strips][2];

  __device__ attending_queries(const attention_shape &shape, const attention_tensors<T> &tensors,
                               int head, int first)
      : shape(shape), first(first),
        masks(masks_of(shape, tensors, head)), dropout{shape, tensors.key, head} {
#pragma unroll
    for (int strip = 0; strip < strips; ++strip)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        largest[strip][half] = hidden_score<float>;
        sum[strip][half] = 0;
      }
  }

  __device__ float scale() const { return static_cast<float>(shape.scale); }
  __device__ int keys() const { return static_cast<int>(shape.sizes.keys); }
  __device__ int queries() const { return static_cast<int>(shape.sizes.queries); }

  // What exp2 takes of a score, less that of `base`. Masks may be so large that only their
  // difference has a logarithm.
  __device__ float exponent(float score, float base) const {
    if constexpr (Rows::is_plain)
      return fma(score, scale() * log2_of_e, -base * (scale() * log2_of_e));
    else
      return (score - base) * log2_of_e;
  }

  template <bool is_edge> __device__ float score(int query, int key, float seen) const {
    return is_edge && key > last_key(query) ? hidden_score<float> : seen;
  }
  __device__ int last_key(int query) const {
    const int seen = query + clamped_row(shape.sizes.reach);
    return seen < keys() ? seen : keys() - 1;
  }

  template <typename Work> __device__ static void for_each_column(Work work) {
#pragma unroll
    for (int group = 0; group < groups; ++group)
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int side = 0; side < 2; ++side)
          work(group, part, side, 16 * group + Rows::column(part) + side);
  }

  // The scores of one row become weights that are not yet divided by their sum.
  template <bool is_edge> __device__ void weigh(int strip, int half, int key, all_scores &scores) {
    const int query = first + Rows::row(strip, half);
    float most = largest[strip][half], added = 0;
    for_each_column([&](int group, int part, int side, int column) {
      float &of = scores[group][strip][part][2 * half + side];
      of = score<is_edge>(query, key + column, of);
      most = fmaxf(most, of);
    });
    most = combine_group<4>(most, [](float a, float b) { return fmaxf(a, b); });
    const float base = most == hidden_score<float> ? 0 : most; // exp2(-infinity - 0) = 0
    const float factor = exp2_approximately(exponent(largest[strip][half], base));
    for_each_column([&](int group, int part, int side, int column) {
      float &of = scores[group][strip][part][2 * half + side];
      of = exp2_approximately(exponent(of, base));
      added += of;
      if constexpr (Rows::is_any)
        of *= dropout.factor(query, key + column);
    });
    sum[strip][half] = fma(sum[strip][half], factor, added);
    largest[strip][half] = most;
#pragma unroll
    for (int group = 0; group < Rows::size / 8; ++group)
#pragma unroll
      for (int side = 0; side < 2; ++side)
        result[strip][group][2 * half + side] *= factor;
  }

  template <bool is_edge>
  __device__ __forceinline__ void visit(int key, const T *k, const T *v,
                                        typename Rows::memory &memory) {
    // Keys that none of the warp's queries sees are left out.
    const int seen = is_edge ? Rows::end_of_warp_keys(shape.sizes, first) - key : Rows::far_rows;
    if (is_edge && seen <= 0)
      return;
    all_scores scores = {};
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      if (is_edge && 16 * group >= seen)
        break;
      Rows::multiply(q, k, 16 * group, memory, scores[group]);
      if constexpr (!Rows::is_plain)
        add_masks<Rows, true>(shape, masks, first, key + 16 * group, scores[group]);
    }
#pragma unroll
    for (int strip = 0; strip < strips; ++strip)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        weigh<is_edge>(strip, half, key, scores);
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      if (is_edge && 16 * group >= seen)
        break;
      typename Rows::weights weights;
      Rows::as_weights(scores[group], weights);
      Rows::add(weights, v, 16 * group, memory, result);
    }
  }

  __device__ __forceinline__ void store(bool masked_to_zero, const head_rows<T> &to,
                                        float *log_sums, typename Rows::memory &memory) {
    float factor[strips][2];
#pragma unroll
    for (int strip = 0; strip < strips; ++strip)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = first + Rows::row(strip, half);
        const float most = largest[strip][half] * (Rows::is_plain ? scale() : 1);
        const row_end<float> last(most, combine_group<4>(sum[strip][half], add_values()),
                                  masked_to_zero);
        factor[strip][half] = 1 / last.divisor;
        if (Rows::column(0) == 0 && query < queries())
          log_sums[query] = last.log_sum;
      }
    Rows::store(
        result, [&](int strip, int half) { return factor[strip][half]; }, to, first,
        memory.near(0));
  }
};

// Some queries for each block, of the last ones first.
template <typename Rows>
__device__ __forceinline__ void
attend_in_warps(const attention_shape &shape, bool masked_to_zero,
                const attention_tensors<typename Rows::element> &tensors,
                typename Rows::memory &memory) {
  using T = typename Rows::element;
  const attention_sizes &sizes = shape.sizes;
  const int head = static_cast<int>(blockIdx.x),
            first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * Rows::rows;
  const head_rows<const T> q(
      matrix_of(tensors.q, shape.batch, shape.q, head, sizes.queries, sizes.size)),
      k(matrix_of(tensors.k, shape.batch, shape.k, head, sizes.keys, sizes.size)),
      v(matrix_of(tensors.v, shape.batch, shape.v, head, sizes.keys, sizes.value_size));
  const auto load = [&](int row, int stage) {
    Rows::template load<Rows::far_rows>(k, row, memory.far(stage, 0));
    Rows::template load<Rows::far_rows>(v, row, memory.far(stage, 1));
  };
  const seen_keys<Rows> seen(sizes, first);
  attending_queries<Rows> queries(shape, tensors, head, first);
  Rows::template load<Rows::rows>(q, first, memory.near(1));
  end_group_of_copies();
  if (seen.end > 0)
    load(0, 0);
  end_group_of_copies();
  wait_for_copies<1>();
  __syncthreads();
  Rows::take(memory.near(1), memory, queries.q);
  seen.visit(queries, memory, load);
  queries.store(masked_to_zero,
                head_rows<T>(matrix_of(tensors.result, shape.batch, shape.result, head,
                                       sizes.queries, sizes.value_size)),
                tensors.log_sum + head * sizes.queries, memory);
}

// Two strips leave no registers for more columns of a result, or the work of other kinds.
template <typename T, int size, attention_kind kind>
using forward_rows = warp_rows<T, size, size <= 64 && kind == attention_kind::plain ? 2 : 1, kind>;

// Kernels that are not templates have shared memory of their own, as the stand-in wants it.
#define WARP_FORWARD(name, T, size, kind)                                                          \
  __global__ void __launch_bounds__(128, 2)                                                        \
      name(attention_shape shape, bool masked_to_zero, const T *q, const T *k, const T *v,         \
           const float *first_mask, const float *second_mask, const int64_t *key, T *result,       \
           float *log_sum) {                                                                       \
    using rows = forward_rows<T, size, attention_kind::kind>;                                      \
    __shared__ rows::memory memory;                                                                \
    attend_in_warps<rows>(shape, masked_to_zero,                                                   \
                          {q, k, v, {first_mask, second_mask}, result, log_sum, key}, memory);     \
  }
WARP_FORWARD(attention_bf16_64, bfloat16, 64, plain)
WARP_FORWARD(attention_bf16_128, bfloat16, 128, plain)
WARP_FORWARD(attention_bf16_64_masked, bfloat16, 64, masked)
WARP_FORWARD(attention_bf16_128_masked, bfloat16, 128, masked)
WARP_FORWARD(attention_bf16_64_any, bfloat16, 64, any)
WARP_FORWARD(attention_bf16_128_any, bfloat16, 128, any)
WARP_FORWARD(attention_f16_64, float16, 64, plain)
WARP_FORWARD(attention_f16_128, float16, 128, plain)
WARP_FORWARD(attention_f16_64_masked, float16, 64, masked)
WARP_FORWARD(attention_f16_128_masked, float16, 128, masked)
WARP_FORWARD(attention_f16_64_any, float16, 64, any)
WARP_FORWARD(attention_f16_128_any, float16, 128, any)
#undef WARP_FORWARD

template <typename T>
using forward_kernel =
    kernel_of_rows<void(attention_shape, bool, const T *, const T *, const T *, const float *,
                        const float *, const int64_t *, T *, float *)>;
#define KERNEL(name, T, size, kind)                                                                \
  { name, forward_rows<T, size, attention_kind::kind>::rows }
#define KERNELS(name, T)                                                                           \
  constexpr forward_kernel<T> name##_kernels[2][3] = {                                             \
      {KERNEL(name##_64, T, 64, plain), KERNEL(name##_64_masked, T, 64, masked),                   \
       KERNEL(name##_64_any, T, 64, any)},                                                         \
      {KERNEL(name##_128, T, 128, plain), KERNEL(name##_128_masked, T, 128, masked),               \
       KERNEL(name##_128_any, T, 128, any)}};                                                      \
  auto forward_kernels(const T *)->decltype((name##_kernels)) { return name##_kernels; }
KERNELS(attention_bf16, bfloat16)
KERNELS(attention_f16, float16)
#undef KERNELS
#undef KERNEL

} // namespace

template <typename T>
bool attention_in_warps(const attention_shape &shape, bool masked_to_zero,
                        const attention_tensors<T> &tensors) {
  const attention_sizes &sizes = shape.sizes;
  const warp_choice choice(shape, tensors,
                           {{shape.q, tensors.q, sizes.queries, sizes.size},
                            {shape.k, tensors.k, sizes.keys, sizes.size},
                            {shape.v, tensors.v, sizes.keys, sizes.value_size},
                            {shape.result, tensors.result, sizes.queries, sizes.value_size}});
  if (!choice.is_suited)
    return false;
  const attention_extents<T> all{shape, tensors};
  const auto &kernel = choice.of(forward_kernels(tensors.q));
  launch("attention", kernel.run, kernel.blocks(all.heads(), sizes.queries), shape, masked_to_zero,
         all.q(), all.k(), all.v(), all.mask(0), all.mask(1), all.key(), all.result(),
         all.log_sum());
  return true;
}

template bool attention_in_warps(const attention_shape &, bool,
                                 const attention_tensors<bfloat16> &);
template bool attention_in_warps(const attention_shape &, bool, const attention_tensors<float16> &);

} // namespace trainc
