// SPDX-License-Identifier: Apache-2.0
//
// What API calls return.
#pragma once

#include "cuda_runtime.h"

namespace trainc::stand_in {

// Keeps an error for cudaGetLastError and returns it.
cudaError_t returned(cudaError_t error);
// What every call answers where no device can be used at all.
cudaError_t device_problem();

} // namespace trainc::stand_in
