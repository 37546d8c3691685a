// SPDX-License-Identifier: Apache-2.0
//
// Measuring by events, after the clocks have become what training will see.
#include "runtime/cuda/products/device_timing.h"

#include "runtime/byte_text.h"
#include "runtime/cuda/errors.h"
#include "runtime/failure.h"
#include "runtime/kernels/narrow_float.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace trainc {
namespace {

constexpr int most_repeats = 4;
constexpr float enough_milliseconds = 20;           // longer work is measured once
constexpr float hopeless = 1.3f;                    // times the best: not repeated
constexpr std::chrono::milliseconds warm_time(100); // after which clocks are what training will see
constexpr int64_t pattern_bytes = 4 << 20;

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

device_timing::~device_timing() {
  if (memory_)
    cudaFree(memory_);
  if (begin_)
    cudaEventDestroy(begin_);
  if (end_)
    cudaEventDestroy(end_);
}

char *device_timing::reserve(int64_t bytes) {
  if (!begin_) {
    check_cuda(cudaEventCreate(&begin_), what_.c_str());
    check_cuda(cudaEventCreate(&end_), what_.c_str());
  }
  if (bytes <= bytes_)
    return memory_;
  if (memory_)
    check_cuda(cudaFree(memory_), what_.c_str());
  memory_ = nullptr;
  bytes_ = 0;
  void *memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation)
    throw failure(
        exit_machine,
        format_text("%s: not enough memory: one of them and its workspace take %s\n  try: "
                    "--no-tuning, which measures none, or ending what else runs on the "
                    "device",
                    what_.c_str(), byte_text(bytes).c_str()));
  check_cuda(status, what_.c_str());
  memory_ = static_cast<char *>(memory);
  bytes_ = bytes;
  return memory_;
}

void device_timing::fill(char *memory, int64_t bytes, product_number number) {
  int64_t filled = std::min(pattern_bytes, bytes);
  const std::vector<char> data = pattern(number, filled);
  check_cuda(cudaMemcpy(memory, data.data(), data.size(), cudaMemcpyHostToDevice), what_.c_str());
  for (; filled < bytes; filled *= 2)
    check_cuda(cudaMemcpy(memory + filled, memory,
                          static_cast<size_t>(std::min(filled, bytes - filled)),
                          cudaMemcpyDeviceToDevice),
               what_.c_str());
}

float device_timing::milliseconds(const std::function<void()> &queue, float best) {
  float shortest = std::numeric_limits<float>::infinity(), sum = 0;
  // The first call loads the kernel.
  for (int repeat = -1; repeat < most_repeats; ++repeat) {
    check_cuda(cudaEventRecord(begin_, stream_), what_.c_str());
    queue();
    check_cuda(cudaEventRecord(end_, stream_), what_.c_str());
    check_cuda(cudaEventSynchronize(end_), what_.c_str());
    float time = 0;
    check_cuda(cudaEventElapsedTime(&time, begin_, end_), what_.c_str());
    if (repeat < 0)
      continue;
    shortest = std::min(shortest, time);
    sum += time;
    if (sum > enough_milliseconds || shortest > hopeless * best)
      break;
  }
  return shortest;
}

void device_timing::warm_up(const std::function<void()> &queue) {
  const auto end = std::chrono::steady_clock::now() + warm_time;
  do {
    queue();
    check_cuda(cudaStreamSynchronize(stream_), what_.c_str());
  } while (std::chrono::steady_clock::now() < end);
  is_warm_ = true;
}

size_t device_timing::fastest(size_t count, const std::function<void(size_t)> &queue) {
  float best = std::numeric_limits<float>::infinity();
  size_t choice = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto one = [&] { queue(i); };
    if (!is_warm_)
      warm_up(one);
    const float time = milliseconds(one, best);
    if (time < best) {
      best = time;
      choice = i;
    }
  }
  return choice;
}

} // namespace trainc
