// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C with the SSE 4.2 instruction or a table.
#include "runtime/files/crc32c.h"

#include <array>
#include <cstring>
#include <nmmintrin.h>

namespace trainc {
namespace {

constexpr uint32_t polynomial = 0x82F63B78; // reflected Castagnoli

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ (value & 1 ? polynomial : 0);
    table[byte] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> table = make_table();

[[gnu::target("sse4.2")]] uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t size) {
  auto bytes = static_cast<const unsigned char *>(data);
  uint64_t state = ~crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; size > 0; --size, ++bytes)
    narrow = _mm_crc32_u8(narrow, *bytes);
  return ~narrow;
}

} // namespace

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t size) {
  auto bytes = static_cast<const unsigned char *>(data);
  uint32_t state = ~crc;
  for (size_t i = 0; i < size; ++i)
    state = (state >> 8) ^ table[(state ^ bytes[i]) & 255];
  return ~state;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2");
  return has_sse42 ? crc32c_sse42(crc, data, size) : crc32c_portable(crc, data, size);
}

} // namespace trainc
