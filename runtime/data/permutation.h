// SPDX-License-Identifier: Apache-2.0
//
// A shuffle of [0, count) that needs no memory of its size: an eight-round Feistel
// network on the smallest even number of bits that holds `count`, walked until the
// value falls inside the range (Black and Rogaway, "Ciphers with arbitrary finite
// domains", 2002; less than four walks on average). Bijective by construction.
// With four rounds neighbours stay related. On a few bits a network reaches the
// orders of its range unevenly with any number of rounds (of 16 values half of them
// never), so small sets are shuffled exactly: Fisher and Yates, in a table.
#pragma once

#include "runtime/random.h"

namespace trainc {

class permutation {
public:
  permutation() = default;
  permutation(uint64_t count, uint64_t seed, uint64_t epoch,
              random_stream stream = random_stream::shuffle)
      : count_(count) {
    if (count <= table_size)
      fill_table(seed, epoch, stream);
    while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < count)
      ++half_bits_;
    for (uint32_t round = 0; round < rounds; ++round)
      keys_[round] = random_bits(seed, stream, epoch, round);
  }

  uint64_t operator()(uint64_t index) const {
    if (count_ <= table_size)
      return table_[index];
    do
      index = encrypt(index);
    while (index >= count_);
    return index;
  }

private:
  static constexpr uint32_t rounds = 8;
  static constexpr uint64_t table_size = 256;

  void fill_table(uint64_t seed, uint64_t epoch, random_stream stream) {
    for (uint32_t i = 0; i < count_; ++i) {
      uint64_t bits = random_bits(seed, stream, epoch, i) >> 32;
      uint64_t other = bits * (i + 1) >> 32; // in [0, i], even to 2^-24
      table_[i] = table_[other];
      table_[other] = static_cast<uint8_t>(i);
    }
  }

  // The finaliser of SplitMix64: a cheap mix is enough, this is not a secret.
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
  uint8_t table_[table_size] = {}; // of small sets: their order
};

} // namespace trainc
