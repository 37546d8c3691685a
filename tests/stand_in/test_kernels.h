// SPDX-License-Identifier: Apache-2.0
//
// What the stand-in's tests share: launches with extents as emitted code has them, and
// device buffers.
#pragma once

#include "report.h"
#include "settings.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace trainc::stand_in {

// Like runtime/cuda/launch.h's.
template <typename T> struct extent {
  T *data;
  int64_t elements;
  operator T *() const { return data; }
};
template <typename T> extent<const T> reads(const T *data, int64_t elements) {
  return {data, elements};
}
template <typename T> extent<T> writes(T *data, int64_t elements) { return {data, elements}; }

template <typename... Parameters, typename... Arguments>
void launch_on(cudaStream_t stream, void (*kernel)(Parameters...), unsigned blocks,
               unsigned threads, Arguments... arguments) {
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(blocks);
  configuration.blockDim = dim3(threads);
  configuration.stream = stream;
  ASSERT_EQ(cudaLaunchKernelEx(&configuration, kernel, arguments...), cudaSuccess);
}
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
            Arguments... arguments) {
  launch_on(nullptr, kernel, blocks, threads, arguments...);
}

// Device memory with the numbers 0, 1, 2, ... or never written.
template <typename T> struct device_buffer {
  explicit device_buffer(int64_t elements, bool filled = true) : elements(elements) {
    EXPECT_EQ(cudaMalloc(&data, elements * sizeof(T)), cudaSuccess);
    if (!filled)
      return;
    const auto host = std::make_unique<T[]>(static_cast<size_t>(elements));
    for (int64_t i = 0; i < elements; ++i)
      host[i] = static_cast<T>(i);
    EXPECT_EQ(cudaMemcpy(data, host.get(), elements * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~device_buffer() { cudaFree(data); }
  device_buffer(const device_buffer &) = delete;
  device_buffer &operator=(const device_buffer &) = delete;
  std::vector<T> host() const {
    const auto result = std::make_unique<T[]>(static_cast<size_t>(elements));
    EXPECT_EQ(cudaMemcpy(result.get(), data, elements * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return {result.get(), result.get() + elements};
  }
  T *data = nullptr;
  int64_t elements;
};

constexpr const char *all_orders[] = {"", "threads=reverse", "threads=random:1", "threads=random:2",
                                      "streams=late"};

// The statement's work ends the program with a message that matches.
#define EXPECT_FAULT(statement, message)                                                           \
  EXPECT_EXIT(                                                                                     \
      {                                                                                            \
        statement;                                                                                 \
        cudaDeviceSynchronize();                                                                   \
      },                                                                                           \
      ::testing::ExitedWithCode(exit_status), message)

} // namespace trainc::stand_in
