// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on tensor cores (warp_rows.h): dq, where a block has some queries and
// goes through keys, and dk and dv, where a block has some keys and goes through queries.
//
// Each computes the scores and slopes that it needs, which makes seven products in place of five.
// To save two, all slopes or dq's parts for each tile of keys would have to be in memory: for 96
// heads of 1024 x 1024 x 64 that writes and reads 400 MB or more. By the peak rates of GPUs with
// these units the two products, 26 GFLOP, take the time of some 250 MB.
#include "runtime/cuda/attention/tile_gradient.h"
#include "runtime/cuda/attention/warp_choice.h"
#include "runtime/cuda/kernels/exp2.h"

namespace trainc {
namespace {

// What the gradient needs of one query; all 0 where there is none.
struct query_numbers {
  float log_sum, mean, inverse;
};

// Weights and slopes of near rows and 16 far ones, from `near` and `far` on: of their scores, or
// products where that is plain, and of the products of values and the result's gradients.
// `numbers` are those of a query: numbers(strip, part, half, side).
template <typename Rows, bool near_are_queries, bool is_edge, typename Numbers>
__device__ __forceinline__ void
differentiate_pairs(const attention_shape &shape, const gradient_head<typename Rows::element> &head,
                    int near, int far, Numbers numbers, typename Rows::pair_sums &weights,
                    typename Rows::pair_sums &slopes) {
  if constexpr (!Rows::is_plain)
    add_masks<Rows, near_are_queries>(shape, head.masks, near, far, weights);
  const auto scale = static_cast<float>(shape.scale);
  const int keys = static_cast<int>(shape.sizes.keys), reach = clamped_row(shape.sizes.reach);
  const int queries = static_cast<int>(shape.sizes.queries);
  Rows::for_each_pair([&](int strip, int part, int half) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int row = near + Rows::row(strip, half), column = far + Rows::column(part) + side,
                query = near_are_queries ? row : column, key = near_are_queries ? column : row;
      const query_numbers of = numbers(strip, part, half, side);
      float &weight = weights[strip][part][2 * half + side],
            &slope = slopes[strip][part][2 * half + side];
      const float score = Rows::is_plain ? fma(weight, scale, -of.log_sum) : weight - of.log_sum;
      weight = exp2_approximately(score * log2_of_e) * of.inverse;
      // Near rows that are not there are not stored; far ones must weigh nothing.
      const bool is_seen =
          (key <= query + reach) & (near_are_queries ? key < keys : query < queries);
      weight = is_edge && !is_seen ? 0 : weight;
      const float factor = Rows::is_any ? head.dropout.factor(query, key) : 1;
      slope = weight * (slope * factor - of.mean);
      if constexpr (is_edge || !Rows::is_plain)
        slope = weight == 0 ? 0 : slope; // what does not weigh may be infinite
      weight *= factor;
    }
  });
}

// ---- dq

template <typename Rows> struct queries_to_differentiate {
  using T = typename Rows::element;

  const attention_shape &shape;
  const gradient_head<T> &head;
  int first;
  typename Rows::fragments q, dresult;
  typename Rows::row_sums dq = {};
  query_numbers numbers[Rows::strips][2];

  __device__ queries_to_differentiate(const attention_shape &shape, const gradient_head<T> &head,
                                      int first)
      : shape(shape), head(head), first(first) {}

  __device__ void take_numbers() {
#pragma unroll
    for (int strip = 0; strip < Rows::strips; ++strip)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int query = first + Rows::row(strip, half);
        const bool is_one = query < static_cast<int>(shape.sizes.queries);
        const row_numbers<float> of = is_one ? head.rows[query] : row_numbers<float>{};
        numbers[strip][half] = {is_one ? head.log_sum[query] : 0, of.mean, of.inverse};
      }
  }

  template <bool is_edge>
  __device__ __forceinline__ void visit(int key, const T *k, const T *v,
                                        typename Rows::memory &memory) {
    // Keys that none of the warp's queries sees are left out.
    const int seen = is_edge ? Rows::end_of_warp_keys(shape.sizes, first) - key : Rows::far_rows;
#pragma unroll 1
    for (int row = 0; row < Rows::far_rows; row += 16) {
      if (is_edge && row >= seen)
        break;
      typename Rows::pair_sums weights = {}, slopes = {};
      Rows::multiply(q, k, row, memory, weights);
      Rows::multiply(dresult, v, row, memory, slopes);
      differentiate_pairs<Rows, true, is_edge>(
          shape, head, first, key + row,
          [&](int strip, int, int half, int) { return numbers[strip][half]; }, weights, slopes);
      typename Rows::weights narrow;
      Rows::as_weights(slopes, narrow);
      Rows::add(narrow, k, row, memory, dq);
    }
  }
};

template <typename Rows>
__device__ __forceinline__ void
find_dq_in_warps(const attention_shape &shape, const attention_gradient_layouts &layouts,
                 const gradient_inputs<typename Rows::element> &in, typename Rows::element *dq,
                 typename Rows::memory &memory) {
  using T = typename Rows::element;
  const attention_sizes &sizes = shape.sizes;
  const int head = static_cast<int>(blockIdx.x),
            first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * Rows::rows;
  const gradient_head<T> of(shape, layouts.dresult, in, head);
  const head_rows<const T> q(of.q), k(of.k), v(of.v), dresult(of.dresult);
  const seen_keys<Rows> seen(sizes, first);
  queries_to_differentiate<Rows> queries(shape, of, first);
  Rows::template load<Rows::rows>(q, first, memory.near(0));
  Rows::template load<Rows::rows>(dresult, first, memory.near(1));
  end_group_of_copies();
  queries.take_numbers();
  wait_for_copies<0>();
  __syncthreads();
  Rows::take(memory.near(0), memory, queries.q);
  Rows::take(memory.near(1), memory, queries.dresult);
  __syncthreads();
  const auto load = [&](int row, int stage) {
    Rows::template load<Rows::far_rows>(k, row, memory.far(stage, 0));
    Rows::template load<Rows::far_rows>(v, row, memory.far(stage, 1));
  };
  if (seen.end > 0)
    load(0, 0);
  end_group_of_copies();
  seen.visit(queries, memory, load);
  const float scale = static_cast<float>(shape.scale);
  Rows::store(
      queries.dq, [&](int, int) { return scale; },
      head_rows<T>(matrix_of(dq, shape.batch, layouts.dq, head, sizes.queries, sizes.size)), first,
      memory.near(0));
}

// ---- dk and dv

// Besides tiles of queries and the result's gradients, what is needed of each query, and the
// block's values, which find no place in registers.
template <typename Rows> struct key_memory {
  typename Rows::memory tiles;
  alignas(128) typename Rows::element values[Rows::rows * Rows::size];
  alignas(16) row_numbers<float> rows[2][Rows::far_rows];
  alignas(16) float log_sums[2][Rows::far_rows];

  __device__ void load(const gradient_head<typename Rows::element> &head, int first, int queries,
                       int stage) {
    const int row = static_cast<int>(threadIdx.x), query = first + row;
    if (row < Rows::far_rows) {
      copy_async<8>(&rows[stage][row], head.rows + query, query < queries);
      copy_async<4>(&log_sums[stage][row], head.log_sum + query, query < queries);
    }
  }
};

template <typename Rows> struct keys_to_differentiate {
  using T = typename Rows::element;

  const attention_shape &shape;
  int first;
  typename Rows::fragments k;
  typename Rows::row_sums dk = {}, dv = {};

  __device__ keys_to_differentiate(const attention_shape &shape, int first)
      : shape(shape), first(first) {}

  // Tiles are not told apart by what is seen, for which there are no registers.
  __device__ __forceinline__ void visit(const gradient_head<T> &head, int query, int stage,
                                        key_memory<Rows> &memory) {
    const T *q = memory.tiles.far(stage, 0), *dresult = memory.tiles.far(stage, 1);
    const int warp_key = first + Rows::warp_row(), reach = clamped_row(shape.sizes.reach);
#pragma unroll 1
    for (int row = 0; row < Rows::far_rows; row += 16) {
      // Queries that see none of the warp's keys are left out.
      const bool is_seen = (query + row + 15 + reach >= warp_key) &
                           (query + row < static_cast<int>(shape.sizes.queries)) &
                           (warp_key < static_cast<int>(shape.sizes.keys));
      if (!is_seen)
        continue;
      typename Rows::pair_sums weights = {}, slopes = {};
      Rows::multiply(k, q, row, memory.tiles, weights);
      Rows::multiply_parts(
          [&](int strip, int step) {
            return Rows::near_part(memory.values, memory.tiles, strip, step);
          },
          dresult, row, memory.tiles, slopes);
      query_numbers numbers[2][2];
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int column = row + Rows::column(part);
        const float2 log_sums = vector_at<float2>(&memory.log_sums[stage][column]);
        const float4 of = vector_at<float4>(&memory.rows[stage][column]);
        numbers[part][0] = {log_sums.x, of.x, of.y};
        numbers[part][1] = {log_sums.y, of.z, of.w};
      }
      differentiate_pairs<Rows, false, true>(
          shape, head, first, query + row,
          [&](int, int part, int, int side) { return numbers[part][side]; }, weights, slopes);
      typename Rows::weights narrow;
      Rows::as_weights(weights, narrow);
      Rows::add(narrow, dresult, row, memory.tiles, dv);
      Rows::as_weights(slopes, narrow);
      Rows::add(narrow, q, row, memory.tiles, dk);
    }
  }
};

// The queries of one head, from the tile of the first one on that sees a key of the block.
template <typename Rows>
__device__ __forceinline__ void visit_queries(const gradient_head<typename Rows::element> &head,
                                              keys_to_differentiate<Rows> &keys,
                                              key_memory<Rows> &memory) {
  const attention_sizes &sizes = keys.shape.sizes;
  const int queries = static_cast<int>(sizes.queries),
            begin = clamped_to(keys.first - clamped_row(sizes.reach), 0, queries) / Rows::far_rows *
                    Rows::far_rows;
  const head_rows<const typename Rows::element> q(head.q), dresult(head.dresult);
  const auto load = [&](int row, int stage) {
    Rows::template load<Rows::far_rows>(q, row, memory.tiles.far(stage, 0));
    Rows::template load<Rows::far_rows>(dresult, row, memory.tiles.far(stage, 1));
    memory.load(head, row, queries, stage);
  };
  __syncthreads(); // none reads what was there before
  int stage = 0;
  load(begin, 0);
  end_group_of_copies();
  Rows::for_each_tile(begin, queries, queries, stage, load,
                      [&](int query, int at) { keys.visit(head, query, at, memory); });
  wait_for_copies<0>();
}

// Of the heads of queries that share a head of keys, one after the other.
template <typename Rows>
__device__ __forceinline__ void
find_dk_and_dv_in_warps(const attention_shape &shape, const attention_gradient_layouts &layouts,
                        const gradient_inputs<typename Rows::element> &in,
                        typename Rows::element *dk, typename Rows::element *dv,
                        key_memory<Rows> &memory) {
  using T = typename Rows::element;
  const attention_sizes &sizes = shape.sizes;
  const int sharing = static_cast<int>(sizes.sharing),
            first_head = static_cast<int>(blockIdx.x) * sharing,
            first = static_cast<int>(blockIdx.y) * Rows::rows;
  keys_to_differentiate<Rows> keys(shape, first);
  {
    const gradient_head<T> of(shape, layouts.dresult, in, first_head);
    Rows::template load<Rows::rows>(head_rows<const T>(of.k), first, memory.tiles.near(0));
    Rows::template load<Rows::rows>(head_rows<const T>(of.v), first, memory.values);
    end_group_of_copies();
    wait_for_copies<0>();
    __syncthreads();
    Rows::take(memory.tiles.near(0), memory.tiles, keys.k);
  }
#pragma unroll 1
  for (int i = 0; i < sharing; ++i)
    visit_queries({shape, layouts.dresult, in, first_head + i}, keys, memory);
  __syncthreads();
  const auto scale = static_cast<float>(shape.scale);
  const head_rows<T> to_dk(
      matrix_of(dk, shape.batch, layouts.dk, first_head, sizes.keys, sizes.size)),
      to_dv(matrix_of(dv, shape.batch, layouts.dv, first_head, sizes.keys, sizes.value_size));
  Rows::store(
      keys.dk, [&](int, int) { return scale; }, to_dk, first, memory.tiles.near(0));
  Rows::store(
      keys.dv, [](int, int) { return 1.0f; }, to_dv, first, memory.values);
}

template <typename T, int size, attention_kind kind>
using dq_rows = warp_rows<T, size, size <= 64 && kind == attention_kind::plain ? 2 : 1, kind>;
template <typename T, int size, attention_kind kind>
using dk_dv_rows =
    warp_rows<T, size, size <= 64 && kind == attention_kind::plain ? 2 : 1, kind, 2048>;

// Kernels that are not templates have shared memory of their own, as the stand-in wants it.
#define WARP_GRADIENT(name, T, size, kind)                                                         \
  __global__ void __launch_bounds__(128, 2) name##_dq(                                             \
      attention_shape shape, attention_gradient_layouts layouts, GRADIENT_INPUTS(T), T *dq) {      \
    using rows_of_block = dq_rows<T, size, attention_kind::kind>;                                  \
    __shared__ rows_of_block::memory memory;                                                       \
    find_dq_in_warps<rows_of_block>(shape, layouts, GATHERED_INPUTS, dq, memory);                  \
  }                                                                                                \
  __global__ void __launch_bounds__(128, 2)                                                        \
      name##_dk_dv(attention_shape shape, attention_gradient_layouts layouts, GRADIENT_INPUTS(T),  \
                   T *dk, T *dv) {                                                                 \
    using rows_of_block = dk_dv_rows<T, size, attention_kind::kind>;                               \
    __shared__ key_memory<rows_of_block> memory;                                                   \
    find_dk_and_dv_in_warps<rows_of_block>(shape, layouts, GATHERED_INPUTS, dk, dv, memory);       \
  }
WARP_GRADIENT(attention_bf16_64, bfloat16, 64, plain)
WARP_GRADIENT(attention_bf16_128, bfloat16, 128, plain)
WARP_GRADIENT(attention_bf16_64_masked, bfloat16, 64, masked)
WARP_GRADIENT(attention_bf16_128_masked, bfloat16, 128, masked)
WARP_GRADIENT(attention_bf16_64_any, bfloat16, 64, any)
WARP_GRADIENT(attention_bf16_128_any, bfloat16, 128, any)
WARP_GRADIENT(attention_f16_64, float16, 64, plain)
WARP_GRADIENT(attention_f16_128, float16, 128, plain)
WARP_GRADIENT(attention_f16_64_masked, float16, 64, masked)
WARP_GRADIENT(attention_f16_128_masked, float16, 128, masked)
WARP_GRADIENT(attention_f16_64_any, float16, 64, any)
WARP_GRADIENT(attention_f16_128_any, float16, 128, any)
#undef WARP_GRADIENT

template <typename T, typename... Results>
using gradient_kernel =
    kernel_of_rows<void(attention_shape, attention_gradient_layouts, const T *, const T *,
                        const T *, const float *, const float *, const int64_t *, const float *,
                        const T *, const row_numbers<float> *, Results *...)>;
#define KERNEL(name, of, T, size, kind)                                                            \
  { name##_##of, of##_rows<T, size, attention_kind::kind>::rows }
#define KERNELS(name, of, T, ...)                                                                  \
  constexpr gradient_kernel<T, __VA_ARGS__> name##_##of##_kernels[2][3] = {                        \
      {KERNEL(name##_64, of, T, 64, plain), KERNEL(name##_64_masked, of, T, 64, masked),           \
       KERNEL(name##_64_any, of, T, 64, any)},                                                     \
      {KERNEL(name##_128, of, T, 128, plain), KERNEL(name##_128_masked, of, T, 128, masked),       \
       KERNEL(name##_128_any, of, T, 128, any)}};                                                  \
  auto of##_kernels(const T *)->decltype((name##_##of##_kernels)) { return name##_##of##_kernels; }
KERNELS(attention_bf16, dq, bfloat16, bfloat16)
KERNELS(attention_bf16, dk_dv, bfloat16, bfloat16, bfloat16)
KERNELS(attention_f16, dq, float16, float16)
KERNELS(attention_f16, dk_dv, float16, float16, float16)
#undef KERNELS
#undef KERNEL

template <typename T, typename Kernel, typename... Results>
void differentiate_in_warps(const char *name, const Kernel &kernel, int64_t heads, int64_t rows,
                            const attention_gradient_call<T> &call, Results... results) {
  const attention_gradient_extents<T> all(call);
  launch(name, kernel.run, kernel.blocks(heads, rows), call.shape, call.layouts, all.of.q(),
         all.of.k(), all.of.v(), all.of.mask(0), all.of.mask(1), all.of.key(), all.log_sum(),
         all.dresult(), all.rows(), results...);
}

} // namespace

template <typename T> bool gradient_in_warps(const attention_gradient_call<T> &call) {
  const attention_shape &shape = call.shape;
  const attention_sizes &sizes = shape.sizes;
  const attention_tensors<T> &in = call.tensors;
  const warp_choice choice(
      shape, in,
      {{shape.q, in.q, sizes.queries, sizes.size},
       {shape.k, in.k, sizes.keys, sizes.size},
       {shape.v, in.v, sizes.keys, sizes.value_size},
       {call.layouts.dresult, call.gradients.dresult, sizes.queries, sizes.value_size},
       {call.layouts.dq, call.gradients.dq, sizes.queries, sizes.size},
       {call.layouts.dk, call.gradients.dk, sizes.keys, sizes.size},
       {call.layouts.dv, call.gradients.dv, sizes.keys, sizes.value_size}});
  if (!choice.is_suited)
    return false;
  const attention_gradient_extents<T> all(call);
  const int64_t heads = all.of.heads();
  differentiate_in_warps("attention's gradient of queries", choice.of(dq_kernels(in.q)), heads,
                         sizes.queries, call, all.dq());
  differentiate_in_warps("attention's gradient of keys and values", choice.of(dk_dv_kernels(in.q)),
                         heads / sizes.sharing, sizes.keys, call, all.dk(), all.dv());
  return true;
}

template bool gradient_in_warps(const attention_gradient_call<bfloat16> &);
template bool gradient_in_warps(const attention_gradient_call<float16> &);

} // namespace trainc
