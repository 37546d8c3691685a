// SPDX-License-Identifier: Apache-2.0
//
// Opens cuDNN where the loader finds it: in the folder of cuBLASLt that the trainer was linked
// with, in LD_LIBRARY_PATH or in the system's folders.
#if __has_include(<cudnn.h>)
#include "runtime/cuda/cudnn_calls.h"

#include <dlfcn.h>

namespace trainc {
namespace {

constexpr const char *library_file = "libcudnn.so.9";
static_assert(CUDNN_MAJOR == 9, "functions are declared as cuDNN 9 has them");

} // namespace

const cudnn_calls *find_cudnn_calls(std::string &missing) {
  static cudnn_calls calls; // one for the process, as the library is
  void *library = dlopen(library_file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    missing = dlerror();
    return nullptr;
  }
#define CUDNN_LOOK_UP(name)                                                                        \
  calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(library, #name));                      \
  if (!calls.name) {                                                                               \
    missing = std::string(library_file) + " has no function " #name;                               \
    return nullptr;                                                                                \
  }
  FOR_CUDNN_CALLS(CUDNN_LOOK_UP)
#undef CUDNN_LOOK_UP
  return &calls;
}

} // namespace trainc
#endif
