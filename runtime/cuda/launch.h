// SPDX-License-Identifier: Apache-2.0
//
// How emitted code starts a kernel: on the stream that the calling thread
// works on (work_place.h).
#pragma once

#include "runtime/cuda/errors.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace trainc {

// A buffer that a kernel gets: its address, and how many elements from there on
// the kernel may touch. The device sees the address alone; the extent is for
// tools that check accesses.
template <typename T> struct buffer_extent {
  T *data;
  int64_t elements;
  operator T *() const { return data; }
};

constexpr int64_t unknown_extent = -1; // anywhere in the arenas

template <typename T> buffer_extent<const T> reads(const T *data, int64_t elements) {
  return {data, elements};
}
template <typename T> buffer_extent<T> writes(T *data, int64_t elements) {
  return {data, elements};
}

struct launch_shape {
  unsigned blocks;  // along x
  unsigned threads; // of a block, along x
  unsigned blocks_y = 1;
};

// The stream that entry functions queue their work on.
cudaStream_t compute_stream();
// Whether entry functions are only walked to plan their matrix products. Then `launch`
// queues nothing, but loads the kernel, so that a device that cannot run it says so
// and nothing is loaded in the middle of a step.
bool only_planning();

// Queues kernel(arguments...). `name` is what an error message calls it.
template <typename... Parameters, typename... Arguments>
void launch(const char *name, void (*kernel)(Parameters...), launch_shape shape,
            Arguments... arguments) {
  if (only_planning()) {
    cudaFuncAttributes attributes = {};
    check_cuda(cudaFuncGetAttributes(&attributes, kernel), name);
    return;
  }
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(shape.blocks, shape.blocks_y, 1);
  configuration.blockDim = dim3(shape.threads, 1, 1);
  configuration.stream = compute_stream();
  check_cuda(cudaLaunchKernelEx(&configuration, kernel, arguments...), name);
}

} // namespace trainc
