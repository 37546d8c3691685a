// SPDX-License-Identifier: Apache-2.0
//
// Every call into CUDA, cuBLASLt and NCCL is checked; the message names the
// operation that failed.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

namespace trainc {

// Each throws `failure` (exit_machine) unless the status is success. `operation`
// says what was being done: a kernel's name, "copy of a batch".
void check_cuda(cudaError_t status, const char *operation);
void check_cublas(cublasStatus_t status, const char *operation);

} // namespace trainc
