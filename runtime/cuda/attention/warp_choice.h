// SPDX-License-Identifier: Apache-2.0
//
// Which of the kernels of warp_rows.h compute an attention.
#pragma once

#include "runtime/cuda/attention/extents.h"
#include "runtime/cuda/attention/warp_rows.h"

#include <initializer_list>

namespace trainc {

// A tensor that a kernel reads or writes: a matrix for each head.
struct used_matrix {
  const matrix_layout &layout;
  const void *data;
  int64_t rows, columns;

  // Whether steps of so many elements keep the alignment of so many bytes.
  bool is_aligned(int64_t elements, uintptr_t bytes) const {
    bool is = layout.column_stride == 1 && columns % elements == 0 &&
              layout.row_stride % elements == 0 && layout.offset % elements == 0 &&
              reinterpret_cast<uintptr_t>(data) % bytes == 0;
    for (const int64_t stride : layout.batch_strides)
      is &= stride % elements == 0;
    return is;
  }
  // Whether an int counts the elements of a head, and of tiles that go beyond it.
  bool is_counted() const {
    constexpr int64_t tile = 128;
    return (rows + tile) * layout.row_stride + (columns + tile) * layout.column_stride <= INT32_MAX;
  }
};

struct warp_choice {
  bool is_suited = true;
  bool is_large; // more than 64 numbers in a row
  attention_kind kind;

  template <typename T>
  warp_choice(const attention_shape &shape, const attention_tensors<T> &tensors,
              std::initializer_list<used_matrix> matrices) {
    const attention_sizes &sizes = shape.sizes;
    const int64_t size = std::max(sizes.size, sizes.value_size);
    constexpr int64_t most_rows = 65535 * 64; // as many blocks are along y
    is_large = size > 64;
    is_suited = size <= 128 && std::max(sizes.queries, sizes.keys) <= most_rows;
    bool is_plain = shape.scale > 0 && shape.dropout.dropped == 0;
    for (const used_matrix &matrix : matrices) {
      is_suited &= matrix.is_counted();
      is_plain &= matrix.is_aligned(8, 16);
    }
    for (int64_t i = 0; i < sizes.masks; ++i) {
      const used_matrix mask = {shape.masks.of[i], tensors.masks[i], sizes.queries, sizes.keys};
      is_suited &= mask.is_counted();
      is_plain &= mask.is_aligned(2, 8);
    }
    kind = !is_plain          ? attention_kind::any
           : sizes.masks == 0 ? attention_kind::plain
                              : attention_kind::masked;
  }

  // Of kernels for each size and kind.
  template <typename Kernel> const Kernel &of(const Kernel (&kernels)[2][3]) const {
    return kernels[is_large ? 1 : 0][static_cast<int>(kind)];
  }
};

// A kernel and how many rows of a head its blocks have.
template <typename Kernel> struct kernel_of_rows {
  Kernel *run;
  int rows;

  launch_shape blocks(int64_t heads, int64_t of_head) const {
    return {blocks_of(heads), 128, static_cast<unsigned>(parts_of(of_head, rows))};
  }
};

} // namespace trainc
