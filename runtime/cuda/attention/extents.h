// SPDX-License-Identifier: Apache-2.0
//
// For launches of attention's kernels: how far tensors reach, and how many blocks there are.
#pragma once

#include "runtime/cuda/attention/gradient.h"
#include "runtime/cuda/launch.h"
#include "runtime/failure.h"
#include "runtime/kernels/matrix_storage.h"

namespace trainc {

inline int64_t parts_of(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

inline unsigned blocks_of(int64_t count) {
  if (count > INT32_MAX)
    throw failure(exit_machine, "attention has more tiles than a GPU's grid of blocks"
                                "\n  try: a smaller batch, or trainc --target cpu");
  return static_cast<unsigned>(count);
}

// The tensors of an attention, with how far they reach.
template <typename T> struct attention_extents {
  const attention_shape &shape;
  const attention_tensors<T> &tensors;

  int64_t heads() const { return batch_count(shape.batch.of); }
  int64_t extent(const matrix_layout &layout, int64_t rows, int64_t columns) const {
    int64_t last =
        layout.offset + (rows - 1) * layout.row_stride + (columns - 1) * layout.column_stride;
    for (int d = 0; d < batch_rank(shape.batch.of); ++d)
      last += (shape.batch.of[d] - 1) * layout.batch_strides[d];
    return last + 1;
  }

  buffer_extent<const T> q() const {
    return reads(tensors.q, extent(shape.q, shape.sizes.queries, shape.sizes.size));
  }
  buffer_extent<const T> k() const {
    return reads(tensors.k, extent(shape.k, shape.sizes.keys, shape.sizes.size));
  }
  buffer_extent<const T> v() const {
    return reads(tensors.v, extent(shape.v, shape.sizes.keys, shape.sizes.value_size));
  }
  buffer_extent<const attention_sum<T>> mask(int i) const {
    const int64_t elements = extent(shape.masks.of[i], shape.sizes.queries, shape.sizes.keys);
    return reads(tensors.masks[i], i < shape.sizes.masks ? elements : 0);
  }
  buffer_extent<const int64_t> key() const {
    return reads(tensors.key, tensors.key == nullptr ? 0 : 1);
  }
  buffer_extent<T> result() const {
    return writes(tensors.result,
                  extent(shape.result, shape.sizes.queries, shape.sizes.value_size));
  }
  buffer_extent<attention_sum<T>> log_sum() const {
    return writes(tensors.log_sum, heads() * shape.sizes.queries);
  }
};

// With how far its tensors reach.
template <typename T> struct attention_gradient_extents {
  using S = attention_sum<T>;
  const attention_gradient_call<T> &call;
  attention_extents<T> of;

  explicit attention_gradient_extents(const attention_gradient_call<T> &call)
      : call(call), of{call.shape, call.tensors} {}

  row_numbers<S> *numbers() const {
    return reinterpret_cast<row_numbers<S> *>(call.gradients.scratch);
  }
  buffer_extent<const S> log_sum() const {
    return reads(static_cast<const S *>(call.tensors.log_sum), of.log_sum().elements);
  }
  buffer_extent<const row_numbers<S>> rows() const {
    return reads(static_cast<const row_numbers<S> *>(numbers()), of.log_sum().elements);
  }
  buffer_extent<const T> dresult() const {
    return reads(call.gradients.dresult,
                 of.extent(call.layouts.dresult, sizes().queries, sizes().value_size));
  }
  buffer_extent<T> dq() const {
    return writes(call.gradients.dq, of.extent(call.layouts.dq, sizes().queries, sizes().size));
  }
  buffer_extent<T> dk() const {
    return writes(call.gradients.dk, of.extent(call.layouts.dk, sizes().keys, sizes().size));
  }
  buffer_extent<T> dv() const {
    return writes(call.gradients.dv, of.extent(call.layouts.dv, sizes().keys, sizes().value_size));
  }
  buffer_extent<S> dmask() const {
    return writes(call.gradients.dmask,
                  of.extent(call.shape.masks.of[sizes().masks], sizes().queries, sizes().keys));
  }

private:
  const attention_sizes &sizes() const { return call.shape.sizes; }
};

} // namespace trainc
