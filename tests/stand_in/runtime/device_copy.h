// SPDX-License-Identifier: Apache-2.0
//
// An array on the device with the values of one on the host.
#pragma once

#include "runtime/cuda/errors.h"

#include <vector>

namespace trainc {

template <typename T> class device_copy {
public:
  explicit device_copy(const std::vector<T> &values) : count_(values.size()) {
    void *memory = nullptr;
    check_cuda(cudaMalloc(&memory, (count_ + 1) * sizeof(T)), "allocation");
    data_ = static_cast<T *>(memory);
    set(values);
  }
  ~device_copy() { cudaFree(data_); }
  device_copy(const device_copy &) = delete;
  device_copy &operator=(const device_copy &) = delete;

  T *data() const { return data_; }
  void set(const std::vector<T> &values) {
    check_cuda(cudaDeviceSynchronize(), "a test");
    check_cuda(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
               "copy");
  }
  // After all queued work.
  std::vector<T> values() const {
    std::vector<T> result(count_);
    check_cuda(cudaDeviceSynchronize(), "a test");
    check_cuda(cudaMemcpy(result.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
               "copy");
    return result;
  }

private:
  size_t count_;
  T *data_ = nullptr;
};

} // namespace trainc
