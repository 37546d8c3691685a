// SPDX-License-Identifier: Apache-2.0
//
// By pieces of integers that lie side by side. Threads share the pieces: no element depends on
// another.
#include "runtime/kernels/dequantize.h"

#include <algorithm>

namespace trainc {
namespace {

constexpr int64_t largest_piece = 256; // elements

using number_reader = void (*)(const void *numbers, int64_t first, int64_t count, float *to);
using number_writer = void (*)(const float *from, int64_t count, void *numbers, int64_t first);

template <typename T>
void read_numbers(const void *numbers, int64_t first, int64_t count, float *to) {
  const T *from = static_cast<const T *>(numbers) + first;
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(from[i]);
}

template <bool is_signed> float number_of(int32_t four_bits) {
  return static_cast<float>(is_signed ? (four_bits ^ 8) - 8 : four_bits);
}

template <bool is_signed>
void read_halves(const void *numbers, int64_t first, int64_t count, float *to) {
  const uint8_t *bytes = static_cast<const uint8_t *>(numbers) + first / 2;
  if (first % 2 != 0 && count > 0) {
    *to++ = number_of<is_signed>(*bytes++ >> 4);
    --count;
  }
  for (int64_t i = 0; i < count / 2; ++i) {
    to[2 * i] = number_of<is_signed>(bytes[i] & 15);
    to[2 * i + 1] = number_of<is_signed>(bytes[i] >> 4);
  }
  if (count % 2 != 0)
    to[count - 1] = number_of<is_signed>(bytes[count / 2] & 15);
}

template <typename T>
void write_numbers(const float *from, int64_t count, void *numbers, int64_t first) {
  T *to = static_cast<T *>(numbers) + first;
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<T>(from[i]);
}

number_reader reader_of(number_form form, const quantized_layout &layout) {
  const bool is_integer = form == number_form::u8 || form == number_form::i8;
  if (is_integer && layout.bits == 4)
    return layout.is_signed ? read_halves<true> : read_halves<false>;
  return form == number_form::u8     ? read_numbers<uint8_t>
         : form == number_form::i8   ? read_numbers<int8_t>
         : form == number_form::bf16 ? read_numbers<bfloat16>
         : form == number_form::f16  ? read_numbers<float16>
                                     : read_numbers<float>;
}

number_writer writer_of(number_form form) {
  return form == number_form::bf16  ? write_numbers<bfloat16>
         : form == number_form::f16 ? write_numbers<float16>
                                    : write_numbers<float>;
}

struct dequantizer {
  const quantized_layout &layout;
  packed_numbers integers, scales;
  const packed_numbers *zeros;
  void *out;
  number_reader read_integers, read_scales, read_zeros;
  number_writer write;

  // Scales and zeros of `count` blocks, or elements of the inner axis, from there on.
  void read_factors(int64_t outer, int64_t at, int64_t count, float *scale, float *zero) const {
    read_scales(scales.data, outer * layout.scale_outer + at, count, scale);
    if (zeros)
      read_zeros(zeros->data, outer * layout.zero_outer + at, count, zero);
    else
      std::fill_n(zero, count, static_cast<float>(layout.zero));
  }

  // `count` elements of one of `outer`, from `at` on; each `share` neighbours have a scale.
  void piece(int64_t outer, int64_t first, int64_t count, int64_t at, int64_t share) const {
    float values[largest_piece], scale[largest_piece], zero[largest_piece];
    read_integers(integers.data, outer * layout.row + first, count, values);
    read_factors(outer, at, (count + share - 1) / share, scale, zero);
    if (share == 1)
      for (int64_t i = 0; i < count; ++i)
        values[i] = (values[i] - zero[i]) * scale[i];
    else
      for (int64_t begin = 0, n = 0; begin < count; begin += share, ++n)
        for (int64_t i = begin; i < std::min(begin + share, count); ++i)
          values[i] = (values[i] - zero[n]) * scale[n];
    write(values, count, out, outer * layout.length * layout.inner + first);
  }

  // Blocks that are neighbours, or elements of one.
  void of_row(int64_t outer, int64_t first, int64_t count) const {
    piece(outer, first, count, first / layout.block * layout.scale_block,
          std::min(layout.block, largest_piece));
  }

  // Of one place along the middle axis.
  void across(int64_t outer, int64_t place, int64_t first, int64_t count) const {
    piece(outer, place * layout.inner + first, count,
          place / layout.block * layout.scale_block + first * layout.scale_inner,
          layout.scale_inner == 0 ? largest_piece : 1);
  }

  void run() const {
    const bool in_rows = layout.inner == 1;
    const int64_t rows = in_rows ? layout.outer : layout.outer * layout.length,
                  width = in_rows ? layout.length : layout.inner;
    const int64_t step = in_rows && layout.block < largest_piece
                             ? largest_piece / layout.block * layout.block
                             : largest_piece;
    // A piece is of one block, or of whole ones.
    const int64_t block = in_rows && layout.block > largest_piece ? layout.block : width;
    const int64_t blocks = (width + block - 1) / block, pieces = (block + step - 1) / step;
#pragma omp parallel for collapse(3) schedule(static) if (rows * width > 8192)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t of = 0; of < blocks; ++of)
        for (int64_t number = 0; number < pieces; ++number) {
          const int64_t first = of * block + number * step,
                        end = std::min(std::min((of + 1) * block, width), first + step);
          if (first >= end)
            continue;
          if (in_rows)
            of_row(row, first, end - first);
          else
            across(row / layout.length, row % layout.length, first, end - first);
        }
  }
};

} // namespace

void dequantize_numbers(const quantized_layout &layout, packed_numbers integers,
                        packed_numbers scales, const packed_numbers *zeros, void *out,
                        number_form form) {
  dequantizer{layout,
              integers,
              scales,
              zeros,
              out,
              reader_of(integers.form, layout),
              reader_of(scales.form, layout),
              zeros ? reader_of(zeros->form, layout) : nullptr,
              writer_of(form)}
      .run();
}

} // namespace trainc
