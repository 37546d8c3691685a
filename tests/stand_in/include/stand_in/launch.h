// SPDX-License-Identifier: Apache-2.0
//
// cudaLaunchKernelEx, which keeps what it learns of a kernel's arguments. An argument
// that has members `data` (a pointer) and `elements` says how far the kernel may
// reach; the kernel itself gets the pointer.
#pragma once

#include "stand_in/device_functions.h"
#include "stand_in/runtime_api.h"

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

struct cudaLaunchAttribute; // none is supported

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};

namespace trainc::stand_in {

struct argument_extent {
  const char *data;
  int64_t bytes; // -1: anywhere
  bool writable;
  int argument; // from 0
  int element_bytes;
};

// A kernel with its arguments, ready to run for one thread after the other.
struct kernel_call {
  const void *function;
  std::vector<argument_extent> extents;
  std::shared_ptr<const void> arguments;
  size_t argument_bytes;
  void (*run_thread)(const void *arguments);
};

cudaError_t queue_kernel(const cudaLaunchConfig_t &configuration, kernel_call call);

template <typename... Parameters> struct bound_kernel {
  void (*kernel)(Parameters...);
  std::tuple<Parameters...> arguments;

  // Reading the arguments is not an access of the kernel's.
  __attribute__((no_sanitize("thread"))) static void run_thread(const void *self) {
    const auto &bound = *static_cast<const bound_kernel *>(self);
    run(bound, std::index_sequence_for<Parameters...>());
  }
  template <size_t... Index>
  __attribute__((no_sanitize("thread"))) static void run(const bound_kernel &bound,
                                                         std::index_sequence<Index...>) {
    bound.kernel(std::get<Index>(bound.arguments)...);
  }
};

template <typename Argument>
void add_extent(std::vector<argument_extent> &extents, int index, const Argument &argument) {
  if constexpr (requires {
                  *argument.data;
                  argument.elements;
                }) {
    using element = std::remove_pointer_t<decltype(argument.data)>;
    const int64_t size = sizeof(element);
    extents.push_back({reinterpret_cast<const char *>(argument.data),
                       argument.elements < 0 ? -1 : argument.elements * size,
                       !std::is_const_v<element>, index, static_cast<int>(size)});
  } else if constexpr (std::is_pointer_v<Argument>) {
    using element = std::remove_pointer_t<Argument>;
    extents.push_back(
        {reinterpret_cast<const char *>(argument), -1, !std::is_const_v<element>, index, 1});
  }
}

} // namespace trainc::stand_in

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *configuration,
                               void (*kernel)(Parameters...), Arguments &&...arguments) {
  using namespace trainc::stand_in;
  std::vector<argument_extent> extents;
  int index = 0;
  (add_extent<std::decay_t<Arguments>>(extents, index++, arguments), ...);
  using bound = bound_kernel<Parameters...>;
  auto stored = std::make_shared<bound>(
      bound{kernel, std::tuple<Parameters...>(static_cast<Parameters>(arguments)...)});
  return queue_kernel(*configuration, {reinterpret_cast<const void *>(kernel), std::move(extents),
                                       std::shared_ptr<const void>(stored, stored.get()),
                                       sizeof(bound), &bound::run_thread});
}
