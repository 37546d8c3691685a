// SPDX-License-Identifier: Apache-2.0
//
// Measures work of the device, on memory that is given back afterwards.
#pragma once

#include "runtime/cuda/products/product_plan.h"

#include <functional>
#include <string>

namespace trainc {

class device_timing {
public:
  // `what` is measured, for messages: "matrix products".
  device_timing(cudaStream_t stream, const char *what)
      : stream_(stream), what_(std::string("measuring of ") + what) {}
  ~device_timing();
  device_timing(const device_timing &) = delete;
  device_timing &operator=(const device_timing &) = delete;

  // Of so many bytes, until it is called again.
  char *reserve(int64_t bytes);
  // Numbers in [-1, 1): a device runs slower on them than on zeros, so only such a measurement
  // says what training will see.
  void fill(char *memory, int64_t bytes, product_number number);
  // The fastest of `count` ways: `queue` queues the work of one.
  size_t fastest(size_t count, const std::function<void(size_t)> &queue);

private:
  float milliseconds(const std::function<void()> &queue, float best);
  void warm_up(const std::function<void()> &queue);

  cudaStream_t stream_;
  std::string what_;
  bool is_warm_ = false;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  char *memory_ = nullptr;
  int64_t bytes_ = 0;
};

// What a tensor takes of such memory, with room for an address that is less aligned.
inline int64_t block_size(int64_t bytes) { return (bytes + 64 + 255) / 256 * 256; }

} // namespace trainc
