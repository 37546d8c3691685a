// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", 2011). A number is a pure function of a key and
// a counter, so nothing needs to be saved to continue a stream.
#pragma once

#include <array>
#include <cstdint>

namespace trainc {

// What a stream is used for, so that two uses of one seed never share numbers.
enum class random_stream : uint32_t { shuffle = 1, window_offset = 2, sampling = 3 };

inline std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter) {
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ low, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ high, static_cast<uint32_t>(a)};
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return counter;
}

inline uint64_t random_bits(uint64_t seed, random_stream stream, uint64_t index,
                            uint32_t element = 0) {
  auto words = philox(seed, {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                             element, static_cast<uint32_t>(stream)});
  return (uint64_t{words[1]} << 32) | words[0];
}

// Uniform in [0, 1) with 53 bits.
inline double random_uniform(uint64_t seed, random_stream stream, uint64_t index,
                             uint32_t element = 0) {
  return static_cast<double>(random_bits(seed, stream, index, element) >> 11) * 0x1p-53;
}

} // namespace trainc
