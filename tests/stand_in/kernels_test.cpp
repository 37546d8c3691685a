// SPDX-License-Identifier: Apache-2.0
//
// Right kernels give right results in every order of threads; wrong ones end the
// program with a message that names what is wrong.
#include "test_kernels.h"

namespace trainc::stand_in {

// ---- kernels. Not in an anonymous namespace: messages name them.

__global__ void triple(const float *x, float *y, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count)
    y[i] = 3 * x[i];
}

__global__ void triple_without_bound(const float *x, float *y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 3 * x[i];
}

__device__ inline float warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

__global__ __launch_bounds__(128) void row_sum(const float *x, float *y, int columns) {
  __shared__ float partial[4];
  float sum = 0;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += static_cast<int>(blockDim.x))
    sum += x[blockIdx.x * static_cast<unsigned>(columns) + static_cast<unsigned>(i)];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    y[blockIdx.x] = partial[0] + partial[1] + partial[2] + partial[3];
}

__global__ void row_sum_without_barrier(const float *x, float *y) {
  __shared__ float partial[4];
  const float sum = warp_sum(x[threadIdx.x]);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = sum;
  if (threadIdx.x == 0)
    y[0] = partial[0] + partial[1] + partial[2] + partial[3];
}

__global__ void neighbours(const float *x, float *y, bool wait) {
  __shared__ float part[32];
  part[threadIdx.x] = x[threadIdx.x];
  if (wait)
    __syncwarp();
  y[threadIdx.x] = part[31 - threadIdx.x];
}

__global__ void reversed_in_place(float *x) {
  const float value = x[blockDim.x - 1 - threadIdx.x];
  x[threadIdx.x] = value;
}

__global__ void reversed_with_barrier(float *x) {
  const float value = x[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = value;
}

__global__ void all_blocks_write_one(float *x) { x[threadIdx.x] = 1; }

__global__ void barrier_for_half() {
  if (threadIdx.x < 32)
    __syncthreads();
}

__global__ void two_barriers() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void shuffle_of_half(float *x) {
  if (threadIdx.x < 16)
    x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
}

__global__ void warp_diverges(float *x) {
  if (threadIdx.x < 16)
    x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  else
    __syncwarp();
}

__global__ void shuffle_beside_barrier(float *x) {
  if (threadIdx.x < 16)
    x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  else
    __syncthreads();
}

__global__ void vector_copy(const float *x, float *y, int shift) {
  const float4 value = *reinterpret_cast<const float4 *>(x + shift + 4 * threadIdx.x);
  *reinterpret_cast<float4 *>(y + 4 * threadIdx.x) = value;
}
__global__ void vector_sum(const float *x, float *y, int shift) {
  const float4 value = *reinterpret_cast<const float4 *>(x + shift + 4 * threadIdx.x);
  y[threadIdx.x] = value.x + value.w;
}
__global__ void vector_store(float *y, int shift) {
  *reinterpret_cast<double2 *>(y + shift + 4 * threadIdx.x) = make_double2(1, 2);
}

__global__ void shared_never_written(float *y) {
  __shared__ float part[64];
  if (threadIdx.x != 5)
    part[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = part[63 - threadIdx.x];
}
__global__ void shared_of_last_block(float *y) {
  __shared__ float part[32];
  if (blockIdx.x == 0)
    part[threadIdx.x] = 1;
  y[blockIdx.x * 32 + threadIdx.x] = part[threadIdx.x];
}

__global__ void shared_too_far(float *y) {
  __shared__ float part[32];
  part[threadIdx.x + 1] = 1;
  __syncwarp();
  y[threadIdx.x] = part[threadIdx.x];
}
__global__ void count_odd(const int *x, int *odd, unsigned *warps) {
  if (x[threadIdx.x] % 2 != 0)
    atomicAdd(odd, 1);
  const unsigned votes = __ballot_sync(0xffffffffu, x[threadIdx.x] % 3 == 0);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = static_cast<unsigned>(__popc(votes));
}
__global__ void atomic_beside_plain(int *x) {
  if (threadIdx.x == 0)
    *x = 7;
  atomicAdd(x, 1);
}

__global__ void flags(const float *x, bool *above, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count)
    above[i] = x[i] > 10;
}
__global__ void select(const bool *above, float *y) { y[threadIdx.x] = above[threadIdx.x] ? 1 : 0; }

__global__ void writes_its_source(const float *x) { const_cast<float *>(x)[threadIdx.x] = 1; }

__global__ void writes_host(float *x) { x[threadIdx.x] = 1; }

__global__ void warp_scans(const int *x, int *y) {
  const int lane = static_cast<int>(threadIdx.x);
  int value = x[lane];
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= static_cast<int>(distance))
      value += other;
  }
  y[lane] = value;
  y[32 + lane] = __shfl_down_sync(0xffffffffu, x[lane], 30);
  y[64 + lane] = __shfl_sync(0xffffffffu, x[lane], 3, 8);
  y[96 + lane] = __any_sync(0xffffffffu, x[lane] == 31) + __all_sync(0xffffffffu, x[lane] < 31);
}

__global__ void two_dimensions(float *y) { y[blockIdx.y * gridDim.x + blockIdx.x] = 1; }

namespace {

class Orders : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override { set_options(GetParam()); }
  void TearDown() override { set_options(""); }
};
INSTANTIATE_TEST_SUITE_P(All, Orders, ::testing::ValuesIn(all_orders));

TEST_P(Orders, Pointwise) {
  device_buffer<float> x(1000), y(1000, false);
  launch(triple, 4, 256, reads(x.data, 1000), writes(y.data, 1000), 1000);
  const auto result = y.host();
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(result[i], 3.0f * i);
}

TEST_P(Orders, RowReduction) {
  device_buffer<float> x(5 * 300), y(5, false);
  launch(row_sum, 5, 128, reads(x.data, 1500), writes(y.data, 5), 300);
  const auto result = y.host();
  for (int row = 0; row < 5; ++row)
    EXPECT_EQ(result[row], 300.0f * (300 * row) + 299 * 150);
}

TEST_P(Orders, WarpExchange) {
  device_buffer<float> x(32), y(32, false);
  launch(neighbours, 1, 32, reads(x.data, 32), writes(y.data, 32), true);
  EXPECT_EQ(y.host()[3], 28);
  device_buffer<float> z(64);
  launch(reversed_with_barrier, 1, 64, writes(z.data, 64));
  EXPECT_EQ(z.host()[3], 60);
}

TEST_P(Orders, WarpFunctions) {
  device_buffer<int> x(32), y(128, false);
  launch(warp_scans, 1, 32, reads(x.data, 32), writes(y.data, 128));
  const auto result = y.host();
  EXPECT_EQ(result[31], 31 * 16);
  EXPECT_EQ(result[32], 30);
  EXPECT_EQ(result[32 + 5], 5); // from beyond the warp: its own
  EXPECT_EQ(result[64 + 17], 19);
  EXPECT_EQ(result[96], 1);
}

TEST_P(Orders, Atomics) {
  device_buffer<int> x(96), odd(1);
  device_buffer<unsigned> warps(3, false);
  launch(count_odd, 1, 96, reads(x.data, 96), writes(odd.data, 1), writes(warps.data, 3));
  EXPECT_EQ(odd.host()[0], 48);
  EXPECT_EQ(warps.host()[0], 11u);
}

TEST_P(Orders, BytesSharingAWord) {
  device_buffer<float> x(30), y(30, false);
  device_buffer<bool> above(30, false);
  launch(flags, 1, 32, reads(x.data, 30), writes(above.data, 30), 30);
  launch(select, 1, 30, reads(above.data, 30), writes(y.data, 30));
  EXPECT_EQ(y.host()[10], 0);
  EXPECT_EQ(y.host()[11], 1);
}

TEST_P(Orders, VectorAccess) {
  device_buffer<float> x(132), y(128, false), z(32, false);
  launch(vector_copy, 1, 32, reads(x.data, 132), writes(y.data, 128), 4);
  EXPECT_EQ(y.host()[127], 131);
  launch(vector_sum, 1, 32, reads(x.data, 132), writes(z.data, 32), 0);
  EXPECT_EQ(z.host()[2], 19);
}

TEST_P(Orders, GridOfTwoDimensions) {
  device_buffer<float> y(6, false);
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(3, 2);
  configuration.blockDim = dim3(1);
  ASSERT_EQ(cudaLaunchKernelEx(&configuration, two_dimensions, writes(y.data, 6)), cudaSuccess);
  EXPECT_EQ(y.host()[5], 1);
}

// ---- faults

TEST_P(Orders, RowBoundOffByOne) {
  device_buffer<float> x(2048), y(2048);
  EXPECT_FAULT(launch(triple, 4, 256, reads(x.data, 1000), writes(y.data, 1000), 1001),
               "triple, block 3, thread 232 \\(kernels_test.cpp:[0-9]+\\): reads 4 bytes out of "
               "bounds: element 1000 of argument 0, which has 1000");
  EXPECT_FAULT(launch(triple_without_bound, 1, 96, reads(x.data, 96), writes(y.data, 95)),
               "writes 4 bytes out of bounds: element 95 of argument 1, which has 95");
  EXPECT_FAULT(launch(writes_its_source, 1, 32, reads(x.data, 96)),
               "writes 4 bytes at element [0-9]+ of argument 0, which has 96 and may only be read");
}

TEST_P(Orders, SharedArrayBounds) {
  device_buffer<float> y(32);
  EXPECT_FAULT(launch(shared_too_far, 1, 32, writes(y.data, 32)),
               "shared_too_far, block 0, thread 31 .*writes 4 bytes out of bounds: byte 128 of the "
               "shared array 'part', which has 128");
}

TEST_P(Orders, OutsideDeviceMemory) {
  device_buffer<float> x(64), y(64);
  EXPECT_FAULT(launch(triple_without_bound, 1, 96, reads(x.data, -1), writes(y.data, -1)),
               "(reads|writes) 4 bytes outside device memory");
  std::vector<float> host(32);
  EXPECT_FAULT(launch(writes_host, 1, 32, writes(host.data(), -1)), "outside device memory");
  EXPECT_FAULT(launch(writes_host, 1, 32, writes(host.data(), 32)),
               "argument 0 .32 elements. reaches outside device memory");
}

TEST_P(Orders, RemovedBarrier) {
  device_buffer<float> x(128), y(32);
  EXPECT_FAULT(
      launch(row_sum_without_barrier, 1, 128, reads(x.data, 128), writes(y.data, 1)),
      "row_sum_without_barrier, block 0, thread [0-9]+.*(race: (reads|writes) 4 bytes that "
      "thread [0-9]+ of the same block (wrote|read) with no barrier between|never "
      "written): byte [0-9]+ of the shared array 'partial', which has 16");
  EXPECT_FAULT(launch(neighbours, 1, 32, reads(x.data, 32), writes(y.data, 32), false),
               "race: .* with no barrier between|never written");
}

TEST_P(Orders, RacesInGlobalMemory) {
  device_buffer<float> x(64);
  EXPECT_FAULT(
      launch(reversed_in_place, 1, 64, writes(x.data, 64)),
      "race: (reads|writes) 4 bytes that thread [0-9]+ of the same block (wrote|read) with "
      "no barrier between: element [0-9]+ of argument 0");
  EXPECT_FAULT(launch(all_blocks_write_one, 2, 64, writes(x.data, 64)),
               "race: writes 4 bytes that thread [0-9]+ of block [01] wrote");
  EXPECT_FAULT(launch(atomic_beside_plain, 1, 32, writes(reinterpret_cast<int *>(x.data), 1)),
               "race: (writes|updates) 4 bytes");
}

TEST_P(Orders, BarrierNotReachedByAll) {
  EXPECT_FAULT(launch(barrier_for_half, 1, 64),
               "barrier not reached by all threads: thread [0-9]+ waits in __syncthreads at "
               "kernels_test.cpp:[0-9]+, thread [0-9]+ has returned from the kernel");
  EXPECT_FAULT(launch(two_barriers, 1, 64), "thread [0-9]+ in another one at kernels_test.cpp");
}

TEST_P(Orders, AbsentLanes) {
  device_buffer<float> x(32);
  EXPECT_FAULT(launch(shuffle_of_half, 1, 32, writes(x.data, 32)),
               "__shfl_xor_sync at kernels_test.cpp:[0-9]+ needs all lanes of its mask, thread "
               "[0-9]+ has returned");
  EXPECT_FAULT(launch(warp_diverges, 1, 32, writes(x.data, 32)), "lanes of one warp diverge");
  EXPECT_FAULT(launch(shuffle_beside_barrier, 1, 32, writes(x.data, 32)),
               "threads wait for each other for ever: thread [0-9]+ waits in __shfl_xor_sync at "
               "kernels_test.cpp:[0-9]+ for lane [0-9]+ of its warp, thread [0-9]+ waits in "
               "__syncthreads");
}

TEST_P(Orders, MisalignedVectors) {
  device_buffer<float> x(132), y(132);
  EXPECT_FAULT(launch(vector_copy, 1, 32, reads(x.data, 132), writes(y.data, 128), 1),
               "vector_copy, block 0, thread [0-9]+ \\(.*misaligned access of 16 bytes at element "
               "[0-9]+ of argument 0, which has 132: the address is 4 more than a multiple of 16");
  EXPECT_FAULT(launch(vector_sum, 1, 32, reads(x.data, 132), writes(y.data, 32), 2),
               "misaligned access of 16 bytes");
  EXPECT_FAULT(launch(vector_store, 1, 32, writes(y.data, 132), 2),
               "misaligned access of 16 bytes");
}

TEST_P(Orders, NeverWritten) {
  device_buffer<float> x(64, false), y(64);
  EXPECT_FAULT(launch(triple, 1, 64, reads(x.data, 64), writes(y.data, 64), 64),
               "triple, block 0, thread [0-9]+ .*reads 4 bytes never written: element [0-9]+ of "
               "argument 0");
  EXPECT_FAULT(
      launch(shared_never_written, 1, 64, writes(y.data, 64)),
      "thread 58 .*reads 4 bytes never written: byte [0-9]+ of the shared array .part., which has");
  EXPECT_FAULT(
      launch(shared_of_last_block, 2, 32, writes(y.data, 64)),
      "block 1, .*reads 4 bytes never written: byte [0-9]+ of the shared array .part., which has");
  EXPECT_FAULT(x.host(), "copy from the device of 256 bytes on the default stream: reads 4 bytes "
                         "never written: byte 0 of device allocation");
  device_buffer<bool> above(30, false);
  launch(flags, 1, 32, reads(y.data, 5), writes(above.data, 5), 5);
  EXPECT_FAULT(launch(select, 1, 7, reads(above.data, 7), writes(y.data, 7)),
               "thread [56] .*reads 1 byte never written");
}

} // namespace
} // namespace trainc::stand_in
