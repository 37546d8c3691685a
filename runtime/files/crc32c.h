// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli), the checksum of checkpoint blocks and of initial parameters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainc {

// Continues `crc` (0 to begin with) over `size` bytes. Uses the SSE 4.2
// instruction where the CPU has it.
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

// The table form, which `crc32c` falls back to; public for the test that
// compares the two.
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t size);

// A safetensors file may hold the checksum of a tensor's bytes, 8 digits, in its metadata under
// this and the tensor's name. Those of trainc do, and readers check it where it is there.
constexpr char padding_prefix[] = "padding."; // of tensors that fill gaps between others
constexpr char tensor_checksum_prefix[] = "crc32c:";
// Of metadata: the path of a file that has frozen weights, by the number of the part of it.
constexpr char frozen_file_prefix[] = "frozen_file:";

} // namespace trainc
