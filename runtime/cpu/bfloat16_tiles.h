// SPDX-License-Identifier: Apache-2.0
//
// Whether the processor multiplies tiles of bf16 (AMX), and oneDNN may have it do so.
#pragma once

#include <dnnl.h>

namespace trainc {

inline bool multiplies_bfloat16() {
  static const bool is_there = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) &
                                dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
  return is_there;
}

} // namespace trainc
