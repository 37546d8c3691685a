// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", 2011), which passes the BigCrush tests. A number is a
// pure function of a key and a counter, so it is the same on every thread, rank and
// target, and nothing needs to be saved to continue a stream.
#pragma once

#include "runtime/kernels/inline.h"

#include <cstdint>

namespace trainc {

struct philox_words {
  uint32_t a, b, c, d;
  bool operator==(const philox_words &) const = default;
};

TRAINC_INLINE philox_words philox(uint64_t key, philox_words x) {
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
#ifndef __CUDACC__
#pragma GCC unroll 10 // so that a loop over elements can be vectorised
#endif
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xD2511F53u} * x.a, q = uint64_t{0xCD9E8D57u} * x.c;
    x = {static_cast<uint32_t>(q >> 32) ^ x.b ^ low, static_cast<uint32_t>(q),
         static_cast<uint32_t>(p >> 32) ^ x.d ^ high, static_cast<uint32_t>(p)};
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return x;
}

// Number `element` of stream `stream` under a key, 64 random bits. Emitted kernels have a
// stream for each random operation of the model and a key for each micro-batch.
TRAINC_INLINE uint64_t random_word(int64_t key, int64_t stream, int64_t element) {
  const philox_words x =
      philox(static_cast<uint64_t>(key),
             {static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32),
              static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)});
  return uint64_t{x.a} << 32 | x.b;
}

// Its highest bits: an integer of [0, 2^bits), which is an int where one holds it, since 32-bit
// lanes are twice as many.
template <int bits> TRAINC_INLINE auto random_bits(int64_t key, int64_t stream, int64_t element) {
  static_assert(0 < bits && bits < 64);
  const uint64_t word = random_word(key, stream, element);
  if constexpr (bits < 32)
    return static_cast<int32_t>(static_cast<uint32_t>(word >> 32) >> (32 - bits));
  else
    return static_cast<int64_t>(word >> (64 - bits));
}

// Dropout: an element is dropped where its number of [0, 2^dropout_bits) is less than `dropped`.
constexpr int dropout_bits = 30;

// What the others are multiplied by, so that the mean stays.
TRAINC_INLINE constexpr double dropout_factor(int64_t dropped) {
  constexpr int64_t all = int64_t{1} << dropout_bits;
  return dropped < all ? static_cast<double>(all) / static_cast<double>(all - dropped) : 0;
}

} // namespace trainc
