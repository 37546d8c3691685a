// SPDX-License-Identifier: Apache-2.0
//
// What other files ask of the processor. Everything was compiled for one: there is nothing to
// choose.
#include "runtime/cpu/row_products.h"
#include "runtime/cpu/wide_vectors.h"
#include "runtime/process/cpu_check.h"

namespace trainc {

#if defined(__AVX512F__)
const vectors widest = vectors::avx512;
#elif defined(__AVX2__)
const vectors widest = vectors::avx2;
#else
const vectors widest = vectors::any;
#endif

bool multiplies_bfloat16() { return false; }

bool cpu_supports(const char *, std::string *) { return true; }

} // namespace trainc
