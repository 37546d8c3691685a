// SPDX-License-Identifier: Apache-2.0
//
// Weights as integers of 4 or 8 bits with scales.
#pragma once

#include "runtime/kernels/narrow_float.h"

#include <cstdint>

namespace trainc {

// Where the integers of a tensor and their scales lie; strides count elements. The tensor's axes
// are taken as three: [outer, length, inner], and scales are those of blocks along the middle one.
struct quantized_layout {
  int64_t bits;      // 8, or 4: two to a byte, the first in its lower half
  int64_t is_signed; // two's complement
  int64_t zero;      // what stands for 0, where no tensor says it
  int64_t outer, length, inner;
  int64_t block; // along `length`, elements that share a scale
  int64_t row;   // integers for each of `outer`, with those that fill the last block
  int64_t scale_outer, scale_block, scale_inner; // strides of scales; 0: all have one
  int64_t zero_outer; // of zeros, whose other strides are those of scales
};

enum class number_form { u8, i8, f32, bf16, f16 };

constexpr number_form form_of(const uint8_t *) { return number_form::u8; }
constexpr number_form form_of(const int8_t *) { return number_form::i8; }
constexpr number_form form_of(const float *) { return number_form::f32; }
constexpr number_form form_of(const bfloat16 *) { return number_form::bf16; }
constexpr number_form form_of(const float16 *) { return number_form::f16; }

// Numbers in memory.
struct packed_numbers {
  const void *data;
  number_form form;
  packed_numbers(const void *numbers, number_form form) : data(numbers), form(form) {}
  template <typename T> packed_numbers(const T *numbers) : data(numbers), form(form_of(numbers)) {}
};

// element = (integer - zero) * scale, computed in f32 and rounded to the result's form, as ONNX's
// DequantizeLinear says. Zeros are of the bits of the integers where they are integers; null: none.
void dequantize_numbers(const quantized_layout &layout, packed_numbers integers,
                        packed_numbers scales, const packed_numbers *zeros, void *out,
                        number_form form);

template <typename Integer, typename Scale, typename Out>
void dequantize(const quantized_layout &layout, const Integer *integers, const Scale *scales,
                Out *out) {
  dequantize_numbers(layout, integers, scales, nullptr, out, form_of(out));
}
template <typename Integer, typename Scale, typename Zero, typename Out>
void dequantize(const quantized_layout &layout, const Integer *integers, const Scale *scales,
                const Zero *zeros, Out *out) {
  const packed_numbers given(zeros);
  dequantize_numbers(layout, integers, scales, &given, out, form_of(out));
}

} // namespace trainc
