// SPDX-License-Identifier: Apache-2.0
//
// How small functions for emitted kernels are declared: for host and device alike, and
// always inline, since a call inside a loop would keep it from being vectorised.
#pragma once

#ifdef __CUDACC__
#define TRAINC_INLINE __host__ __device__ inline __attribute__((always_inline))
#else
#define TRAINC_INLINE inline __attribute__((always_inline))
#endif
