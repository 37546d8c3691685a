// SPDX-License-Identifier: Apache-2.0
//
// In place of the runtime's file of this name: the stand-in's cuDNN is in the program.
#include "runtime/cuda/cudnn_calls.h"

#include "tests/stand_in/settings.h"

namespace trainc {

const cudnn_calls *find_cudnn_calls(std::string &missing) {
  static cudnn_calls calls;
  if (stand_in::options().no_cudnn) {
    missing = "libcudnn.so.9: cannot open shared object file: No such file or directory";
    return nullptr;
  }
#define CUDNN_TAKE(name) calls.name = ::name;
  FOR_CUDNN_CALLS(CUDNN_TAKE)
#undef CUDNN_TAKE
  return &calls;
}

} // namespace trainc
