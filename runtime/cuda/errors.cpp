// SPDX-License-Identifier: Apache-2.0
//
// Failed calls as errors of the machine.
#include "runtime/cuda/errors.h"

#include "runtime/failure.h"

namespace trainc {

void check_cuda(cudaError_t status, const char *operation) {
  if (status == cudaSuccess)
    return;
  cudaGetLastError(); // which the caller's next call would find else
  throw failure(exit_machine, format_text("%s: the GPU reports: %s (%s)", operation,
                                          cudaGetErrorString(status), cudaGetErrorName(status)));
}

} // namespace trainc
