// SPDX-License-Identifier: Apache-2.0
//
// Operands hold numbers in [-1, 1): a device runs slower on them than on zeros,
// so only such a measurement says what training will see.
#include "runtime/cuda/products/product_timing.h"

#include "runtime/arena.h"
#include "runtime/byte_text.h"
#include "runtime/cuda/errors.h"
#include "runtime/cuda/products/matmul.h"
#include "runtime/failure.h"
#include "runtime/kernels/narrow_float.h"

#include <algorithm>
#include <limits>

namespace trainc {
namespace {

constexpr const char *measuring = "measuring of matrix products";
constexpr int most_repeats = 4;
constexpr float enough_milliseconds = 20; // a longer product is measured once
constexpr float hopeless = 1.3f;          // times the best: not repeated
constexpr float warm_milliseconds = 100;  // of work, after which clocks are what training will see
constexpr int64_t pattern_bytes = 4 << 20;

// With room for an address that is less aligned than the block.
int64_t block_size(int64_t bytes) { return (bytes + 64 + 255) / 256 * 256; }

template <typename T> std::vector<char> pattern(int64_t bytes) {
  std::vector<char> data(static_cast<size_t>(bytes));
  auto *numbers = reinterpret_cast<T *>(data.data());
  uint32_t state = 1;
  for (size_t i = 0; i < data.size() / sizeof(T); ++i) {
    state = state * 1664525u + 1013904223u;
    numbers[i] = static_cast<T>(static_cast<double>(state >> 8) / (1 << 23) - 1);
  }
  return data;
}

std::vector<char> pattern(product_number number, int64_t bytes) {
  return number == product_number::f64   ? pattern<double>(bytes)
         : number == product_number::f32 ? pattern<float>(bytes)
         : number == product_number::f16 ? pattern<float16>(bytes)
                                         : pattern<bfloat16>(bytes);
}

} // namespace

product_timing::~product_timing() {
  if (memory_)
    cudaFree(memory_);
  if (begin_)
    cudaEventDestroy(begin_);
  if (end_)
    cudaEventDestroy(end_);
}

void product_timing::reserve(int64_t bytes) {
  if (!begin_) {
    check_cuda(cudaEventCreate(&begin_), measuring);
    check_cuda(cudaEventCreate(&end_), measuring);
  }
  if (bytes <= bytes_)
    return;
  if (memory_)
    check_cuda(cudaFree(memory_), measuring);
  memory_ = nullptr;
  void *memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation)
    throw failure(
        exit_machine,
        format_text("%s: not enough memory: one product and its workspace take %s\n  try: "
                    "--no-tuning, which measures none, or ending what else runs on the "
                    "device",
                    measuring, byte_text(bytes).c_str()));
  check_cuda(status, measuring);
  memory_ = static_cast<char *>(memory);
  bytes_ = bytes;
}

// The workspace comes first, then the operands, filled anew: c is overwritten.
product_operands product_timing::place(const product_plan &plan) {
  const product_geometry &geometry = plan.geometry();
  const matmul_shape &shape = plan.key().shape;
  const int64_t element = bytes_of(plan.key().operands), result = bytes_of(plan.key().result);
  const int64_t sizes[] = {block_size((shape.a.offset + geometry.a_extent) * element),
                           block_size((shape.b.offset + geometry.b_extent) * element),
                           block_size((shape.c.offset + geometry.c_extent) * result),
                           block_size(std::max(shape.m, shape.n) * result),
                           block_size(shape.m * shape.n * result)};
  int64_t operand_bytes = 0;
  for (int64_t size : sizes)
    operand_bytes += size;
  reserve(product_workspace_bytes + operand_bytes);

  char *operands = memory_ + product_workspace_bytes;
  int64_t filled = std::min(pattern_bytes, operand_bytes);
  const std::vector<char> data = pattern(plan.key().operands, filled);
  check_cuda(cudaMemcpy(operands, data.data(), data.size(), cudaMemcpyHostToDevice), measuring);
  for (; filled < operand_bytes; filled *= 2)
    check_cuda(cudaMemcpy(operands + filled, operands,
                          static_cast<size_t>(std::min(filled, operand_bytes - filled)),
                          cudaMemcpyDeviceToDevice),
               measuring);

  char *addresses[5];
  for (int i = 0; i < 5; ++i) {
    const int64_t alignment = plan.key().alignment[i];
    addresses[i] = alignment == 0 ? nullptr : operands + alignment % 64;
    operands += sizes[i];
  }
  return {addresses[0], addresses[1], addresses[2], addresses[3], addresses[4]};
}

float product_timing::milliseconds(cublasLtHandle_t library, product_plan &plan,
                                   const product_operands &operands, float best) {
  float shortest = std::numeric_limits<float>::infinity(), sum = 0;
  // The first call loads the kernel.
  for (int repeat = -1; repeat < most_repeats; ++repeat) {
    check_cuda(cudaEventRecord(begin_, stream_), measuring);
    plan.run(library, operands, memory_, stream_);
    check_cuda(cudaEventRecord(end_, stream_), measuring);
    check_cuda(cudaEventSynchronize(end_), measuring);
    float time = 0;
    check_cuda(cudaEventElapsedTime(&time, begin_, end_), measuring);
    if (repeat < 0)
      continue;
    shortest = std::min(shortest, time);
    sum += time;
    if (sum > enough_milliseconds || shortest > hopeless * best)
      break;
  }
  return shortest;
}

void product_timing::warm_up(cublasLtHandle_t library, product_plan &plan,
                             const product_operands &operands) {
  float passed = 0;
  check_cuda(cudaEventRecord(begin_, stream_), measuring);
  while (passed < warm_milliseconds) {
    plan.run(library, operands, memory_, stream_);
    check_cuda(cudaEventRecord(end_, stream_), measuring);
    check_cuda(cudaEventSynchronize(end_), measuring);
    check_cuda(cudaEventElapsedTime(&passed, begin_, end_), measuring);
  }
  is_warm_ = true;
}

cublasLtMatmulAlgo_t product_timing::fastest(cublasLtHandle_t library, product_plan &plan,
                                             const std::vector<cublasLtMatmulAlgo_t> &algorithms) {
  const product_operands operands = place(plan);
  float best = std::numeric_limits<float>::infinity();
  size_t choice = 0;
  for (size_t i = 0; i < algorithms.size(); ++i) {
    plan.adopt(algorithms[i]);
    if (!is_warm_)
      warm_up(library, plan, operands);
    const float time = milliseconds(library, plan, operands, best);
    if (time < best) {
      best = time;
      choice = i;
    }
  }
  return algorithms[choice];
}

} // namespace trainc
