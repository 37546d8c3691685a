// SPDX-License-Identifier: Apache-2.0
//
// A shuffle of [0, count) that needs no memory: a four-round Feistel network on
// the smallest even number of bits that holds `count`, walked until the value
// falls inside the range (Black and Rogaway, "Ciphers with arbitrary finite
// domains", 2002; less than four walks on average). Bijective by construction.
#pragma once

#include "runtime/random.h"

namespace trainc {

class permutation {
public:
  permutation() = default;
  permutation(uint64_t count, uint64_t seed, uint64_t epoch) : count_(count) {
    while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < count)
      ++half_bits_;
    for (uint32_t round = 0; round < rounds; ++round)
      keys_[round] = random_bits(seed, random_stream::shuffle, epoch, round);
  }

  uint64_t operator()(uint64_t index) const {
    if (count_ < 2)
      return index;
    do
      index = encrypt(index);
    while (index >= count_);
    return index;
  }

private:
  static constexpr uint32_t rounds = 4;

  // The finaliser of SplitMix64: a cheap mix is enough, this is no secret.
  static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
  }

  uint64_t encrypt(uint64_t value) const {
    uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint64_t key : keys_) {
      uint64_t next = left ^ (mix(right + key) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  uint64_t count_ = 0;
  int half_bits_ = 1;
  uint64_t keys_[rounds] = {};
};

} // namespace trainc
