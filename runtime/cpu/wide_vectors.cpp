// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/wide_vectors.h"

#include <dnnl.h>

namespace trainc {

static vectors find_widest() {
#if defined(__x86_64__)
  const auto allowed = [](int isa) { return (dnnl_get_effective_cpu_isa() & isa) == isa; };
  if (allowed(dnnl_cpu_isa_avx512_core) && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    return vectors::avx512;
  if (allowed(dnnl_cpu_isa_avx2) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return vectors::avx2;
#endif
  return vectors::any;
}
const vectors widest = find_widest();

} // namespace trainc
