// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's engine, its names of numbers, and whether it multiplies tiles of bf16.
#pragma once

#include "runtime/kernels/narrow_float.h"

#include <dnnl.hpp>

namespace trainc {

inline const dnnl::engine &library_engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

// Whether the processor does (AMX), and oneDNN may have it do so.
inline bool multiplies_bfloat16() {
  static const bool is_there = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) &
                                dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
  return is_there;
}

constexpr dnnl::memory::data_type library_type(const float *) {
  return dnnl::memory::data_type::f32;
}
constexpr dnnl::memory::data_type library_type(const bfloat16 *) {
  return dnnl::memory::data_type::bf16;
}

} // namespace trainc
