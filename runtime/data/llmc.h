// SPDX-License-Identifier: Apache-2.0
//
// Files of tokens as llm.c has them (dev/data/data_common.py): 256 numbers of 32 bits, where the
// first three mean something, then the tokens.
#pragma once

#include "runtime/files/npy.h"

namespace trainc {

constexpr int64_t llmc_header_bytes = 1024;

struct llmc_header {
  int32_t magic, version, tokens;
};

struct llmc_format {
  int32_t magic, version;
  file_type type;
};
constexpr llmc_format llmc_formats[] = {{20240520, 1, file_type::u16},  // GPT-2
                                        {20240801, 7, file_type::u32}}; // Llama 3

} // namespace trainc
