// SPDX-License-Identifier: Apache-2.0
//
// What kernels do by PTX on a device (runtime/cuda/kernels): loads and products of matrices, and
// copies to shared memory. Of small integers, so that sums are exact.
#include "test_kernels.h"

#include "runtime/cuda/kernels/async_copy.h"
#include "runtime/cuda/kernels/exp2.h"
#include "runtime/cuda/kernels/tensor_core.h"

#include <cmath>

namespace trainc::stand_in {

constexpr int side = 16; // of the matrices here

struct product_memory {
  alignas(16) bfloat16 tiles[2][side * side];
  trainc::warp_exchange exchange;
};
struct numbers_to_copy {
  alignas(16) float of[32 * 4];
};

// to = left right, or left right', of 16 x 16 numbers
template <bool is_transposed>
__device__ void multiply_tiles(const bfloat16 *left, const bfloat16 *right, float *to,
                               product_memory &memory) {
  auto &[tiles, exchange] = memory;
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  for (int i = lane; i < side * side / 8; i += 32) {
    copy_async<16>(tiles[0] + 8 * i, left + 8 * i, true);
    copy_async<16>(tiles[1] + 8 * i, right + 8 * i, true);
  }
  end_group_of_copies();
  wait_for_copies<0>();
  __syncthreads();
  left_fragment a;
  uint32_t b[4];
  load_matrices<false>(tiles[0] + lane % 16 * side + lane / 16 * 8, exchange, a.of);
  if constexpr (is_transposed) // columns of the product are rows
    load_matrices<false>(tiles[1] + (lane / 16 * 8 + lane % 8) * side + lane / 8 % 2 * 8, exchange,
                         b);
  else
    load_matrices<true>(tiles[1] + lane % 16 * side + lane / 16 * 8, exchange, b);
  for (int half = 0; half < 2; ++half) {
    float sums[4] = {};
    multiply_add<bfloat16>(a, {{b[2 * half], b[2 * half + 1]}}, exchange, sums);
    for (int i = 0; i < 4; ++i)
      to[(g + i / 2 * 8) * side + 8 * half + 2 * t + i % 2] = sums[i];
  }
}

__global__ void product(const bfloat16 *left, const bfloat16 *right, float *to) {
  __shared__ product_memory memory;
  multiply_tiles<false>(left, right, to, memory);
}

__global__ void product_transposed(const bfloat16 *left, const bfloat16 *right, float *to) {
  __shared__ product_memory memory;
  multiply_tiles<true>(left, right, to, memory);
}

// Those beyond `count` become 0.
__global__ void copy_some(const float *from, int count, float *to) {
  __shared__ numbers_to_copy numbers;
  const int first = static_cast<int>(threadIdx.x) * 4;
  copy_async<16>(numbers.of + first, from + first, first < count);
  end_group_of_copies();
  wait_for_copies<0>();
  __syncthreads();
  for (int i = 0; i < 4; ++i)
    to[first + i] = numbers.of[first + i];
}

__global__ void misaligned_copy(const float *from, float *to) {
  __shared__ numbers_to_copy numbers;
  copy_async<16>(numbers.of, from + 1, true);
  to[0] = numbers.of[0];
}

__global__ void powers(const float *from, float *to) {
  to[threadIdx.x] = exp2_approximately(-from[threadIdx.x]);
}

// Of matrices with the numbers 0 to 255.
void expect_product(void (*kernel)(const bfloat16 *, const bfloat16 *, float *),
                    bool is_transposed) {
  const device_buffer<bfloat16> matrix(side * side);
  const device_buffer<float> to(side * side, false);
  launch(kernel, 1, 32, reads(matrix.data, side * side), reads(matrix.data, side * side),
         writes(to.data, side * side));
  const std::vector<float> found = to.host();
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      int sum = 0;
      for (int k = 0; k < side; ++k)
        sum += (side * i + k) * (is_transposed ? side * j + k : side * k + j);
      EXPECT_EQ(found[static_cast<size_t>(side * i + j)], static_cast<float>(sum)) << i << " " << j;
    }
}

TEST(tensor_cores, products) {
  for (const char *order : all_orders) {
    set_options(order);
    expect_product(product, false);
    expect_product(product_transposed, true);
  }
  set_options("");
}

TEST(tensor_cores, copies_end_with_zeros) {
  const device_buffer<float> from(64);
  const device_buffer<float> to(128, false);
  launch(copy_some, 1, 32, reads(from.data, 64), 64, writes(to.data, 128));
  const std::vector<float> found = to.host();
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], i < 64 ? static_cast<float>(i) : 0.0f) << i;
}

TEST(tensor_cores, misaligned_copy) {
  const device_buffer<float> from(8);
  const device_buffer<float> to(1, false);
  EXPECT_FAULT(launch(misaligned_copy, 1, 1, reads(from.data, 8), writes(to.data, 1)),
               "misaligned access of 16 bytes");
}

TEST(tensor_cores, powers_of_two) {
  const device_buffer<float> from(32);
  const device_buffer<float> to(32, false);
  launch(powers, 1, 32, reads(from.data, 32), writes(to.data, 32));
  const std::vector<float> found = to.host();
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], std::ldexp(1.0f, -static_cast<int>(i)));
}

} // namespace trainc::stand_in
