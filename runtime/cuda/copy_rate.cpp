// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/copy_rate.h"

#include "runtime/cuda/launch.h"
#include "runtime/cuda/streams.h"

#include <algorithm>

namespace trainc {
namespace {

constexpr const char *copying = "timing of copies";
constexpr int copies = 10;
constexpr int64_t least_bytes = 256 << 20; // of a copy: the caches of the largest devices have half
constexpr int64_t most_bytes = 1 << 30;    // a longer one is not faster
constexpr int64_t place_alignment = 256;

} // namespace

double measure_copy_rate(char *memory, int64_t bytes) {
  const int64_t copied = std::min(most_bytes, bytes / 2 / place_alignment * place_alignment);
  if (copied < least_bytes)
    return 0;
  const auto size = static_cast<size_t>(copied);
  check_cuda(cudaMemsetAsync(memory, 0, size, compute_stream()), copying);
  const event begin(cudaEventDefault), end(cudaEventDefault);
  float shortest = 0;
  for (int i = 0; i < copies; ++i) {
    check_cuda(cudaEventRecord(begin, compute_stream()), copying);
    check_cuda(
        cudaMemcpyAsync(memory + copied, memory, size, cudaMemcpyDeviceToDevice, compute_stream()),
        copying);
    check_cuda(cudaEventRecord(end, compute_stream()), copying);
    check_cuda(cudaEventSynchronize(end), copying);
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), copying);
    shortest = i == 0 ? milliseconds : std::min(shortest, milliseconds);
  }
  return 2 * static_cast<double>(copied) / (1e-3 * static_cast<double>(shortest));
}

} // namespace trainc
