// SPDX-License-Identifier: Apache-2.0
//
// Every call into CUDA is checked; the message names the operation that failed.
#pragma once

#include <cuda_runtime.h>

namespace trainc {

// Throws `failure` (exit_machine) unless the status is success. `operation` says what
// was being done: a kernel's name, "copy of a batch".
void check_cuda(cudaError_t status, const char *operation);

} // namespace trainc
