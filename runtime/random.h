// SPDX-License-Identifier: Apache-2.0
//
// What the runtime itself draws: a stream of random numbers for each purpose
// (runtime/kernels/random.h has the generator).
#pragma once

#include "runtime/kernels/random.h"

namespace trainc {

// What a stream is used for, so that two uses of one seed never share numbers.
enum class random_stream : uint32_t {
  shuffle = 1,
  window_offset = 2,
  sampling = 3,
  step = 4,
  mixture = 5,
  made_up_data = 6,
  augmentation = 7
};

inline uint64_t random_bits(uint64_t seed, random_stream stream, uint64_t index,
                            uint32_t element = 0) {
  const philox_words words =
      philox(seed, {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), element,
                    static_cast<uint32_t>(stream)});
  return (uint64_t{words.b} << 32) | words.a;
}

// Uniform in [0, 1) with 53 bits.
inline double random_uniform(uint64_t seed, random_stream stream, uint64_t index,
                             uint32_t element = 0) {
  return static_cast<double>(random_bits(seed, stream, index, element) >> 11) * 0x1p-53;
}

// The key of what the model draws in a micro-batch of a step, numbered over all ranks. It
// does not say which rank or when: N ranks with one micro-batch draw what one rank with N does.
inline uint64_t micro_batch_key(uint64_t seed, int64_t step, int64_t micro_batch) {
  return random_bits(seed, random_stream::step, static_cast<uint64_t>(step),
                     static_cast<uint32_t>(micro_batch));
}

} // namespace trainc
