// SPDX-License-Identifier: Apache-2.0
//
// The part of CUDA's runtime API that trainers use, on the CPU: for tests of
// emitted programs where no GPU is. Names, signatures and values are those of CUDA
// 13.0, so the same source compiles against either.
#pragma once

#include "stand_in/device_functions.h"
#include "stand_in/runtime_api.h"

#include "stand_in/launch.h"
