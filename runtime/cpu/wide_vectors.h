// SPDX-License-Identifier: Apache-2.0
//
// The runtime is built for any x86-64. Loops that are mostly exp are compiled for wider vectors,
// too, which gives the same bits.
#pragma once

#include <type_traits>

namespace trainc {

// What this machine's loops are compiled for; no more than oneDNN may use (ONEDNN_MAX_CPU_ISA).
enum class vectors { any, avx2, avx512 };
extern const vectors widest;

#if defined(__x86_64__)
template <typename Work>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))) void with_avx512(Work work) {
  work();
}
template <typename Work> __attribute__((target("avx2,fma"))) void with_avx2(Work work) { work(); }

// Runs `work`, a lambda that is always inlined (INLINED), compiled for this machine. f64 serves
// tests.
template <typename T, typename Work> void vectorised(Work work) {
  if constexpr (std::is_same_v<T, double>)
    return work();
  widest == vectors::avx512 ? with_avx512(work)
  : widest == vectors::avx2 ? with_avx2(work)
                            : work();
}
#else
template <typename T, typename Work> void vectorised(Work work) { work(); }
#endif

#define INLINED __attribute__((always_inline))

} // namespace trainc
