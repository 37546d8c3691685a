// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's engine and its names of numbers.
#pragma once

#include "runtime/kernels/narrow_float.h"

#include <dnnl.hpp>

namespace trainc {

inline const dnnl::engine &library_engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

constexpr dnnl::memory::data_type library_type(const float *) {
  return dnnl::memory::data_type::f32;
}
constexpr dnnl::memory::data_type library_type(const bfloat16 *) {
  return dnnl::memory::data_type::bf16;
}

} // namespace trainc
