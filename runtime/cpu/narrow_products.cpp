// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices of 16 bits. Where the processor multiplies tiles of bf16 (AMX), each tile of
// these is a primitive of oneDNN. All others are widened and are products of f32, which is faster
// than what oneDNN 2.6 does with other instructions for bf16. Bits differ between the two.
#include "runtime/kernels/matmul.h"

#include "runtime/cpu/bfloat16_product.h"
#include "runtime/cpu/narrow_lines.h"
#include "runtime/cpu/product_tiles.h"
#include "runtime/cpu/row_products.h"

#include <dnnl.hpp>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trainc {
namespace {

using dnnl::memory;

// A matrix with unit stride along one side.
template <typename T> struct matrix_view {
  T *data;
  int64_t rows, columns;
  matrix_storage storage;

  matrix_view transposed() const {
    return {data, columns, rows, {!storage.row_major, storage.leading}};
  }
  memory::desc layout(memory::data_type type) const {
    const memory::dims strides =
        storage.row_major ? memory::dims{storage.leading, 1} : memory::dims{1, storage.leading};
    return {{rows, columns}, type, strides};
  }
};

template <typename T>
matrix_view<T> view_of(T *base, const matrix_layout &layout, int64_t rows, int64_t columns,
                       int64_t row, int64_t column, int64_t tile_rows, int64_t tile_columns) {
  return {base + row * layout.row_stride + column * layout.column_stride, tile_rows, tile_columns,
          storage_of(layout, rows, columns)};
}

// The operands of a tile of a batch's product. The result lies in rows.
template <typename From, typename To> struct tile_operands {
  matrix_view<const From> a, b;
  matrix_view<To> c;

  tile_operands(const matmul_shape &shape, const tile &part, int64_t batch, const From *of_a,
                const From *of_b, To *of_c)
      : a(view_of(of_a + batch_offset(shape, shape.a, batch), shape.a, shape.m, shape.k, part.row,
                  0, part.rows, shape.k)),
        b(view_of(of_b + batch_offset(shape, shape.b, batch), shape.b, shape.k, shape.n, 0,
                  part.column, shape.k, part.columns)),
        c(view_of(of_c + batch_offset(shape, shape.c, batch), shape.c, shape.m, shape.n, part.row,
                  part.column, part.rows, part.columns)) {
    if (c.storage.row_major)
      return;
    const auto left = a; // the transposed product: c' = b' a'
    a = b.transposed();
    b = left.transposed();
    c = c.transposed();
  }
};

// ---- products of bf16

// What the tiles of one product need, so that they take nothing from the system afterwards.
class prepared_product {
public:
  template <typename To>
  prepared_product(const matmul_shape &shape, bool adds, const bfloat16 *a, const bfloat16 *b,
                   To *c)
      : shape_(shape) {
    const one_thread alone;
    const product_tiles tiles(shape);
    std::map<std::pair<int64_t, int64_t>, size_t> of_size;
    of_tile_.resize(static_cast<size_t>(tiles.count()));
    for (size_t index = 0; index < of_tile_.size(); ++index) {
      const auto number = static_cast<int64_t>(index);
      const tile part = tiles.at(number);
      if (part.rows == 0 || part.columns == 0)
        continue;
      const tile_operands of(shape, part, tiles.batch(number), a, b, c);
      const auto [known, is_new] = of_size.try_emplace({part.rows, part.columns}, index);
      of_tile_[index] = is_new ? bfloat16_product(of.a.layout(memory::data_type::bf16),
                                                  of.b.layout(memory::data_type::bf16),
                                                  of.c.layout(library_type(c)), adds)
                               : of_tile_[known->second].another();
    }
  }

  const matmul_shape &shape() const { return shape_; }

  template <typename To> void run(int64_t index, const tile_operands<bfloat16, To> &of) {
    of_tile_[static_cast<size_t>(index)].run(of.a.data, of.b.data, of.c.data);
  }

private:
  matmul_shape shape_;
  std::vector<bfloat16_product> of_tile_; // those of empty ones have nothing
};

template <typename To>
prepared_product &prepared(const matmul_shape &shape, bool adds, const bfloat16 *a,
                           const bfloat16 *b, To *c) {
  using key = const matmul_shape *;
  thread_local std::unordered_map<key, prepared_product> known[2];
  std::unordered_map<key, prepared_product> &of = known[adds ? 1 : 0];
  auto found = of.find(&shape);
  if (found != of.end() && !(found->second.shape() == shape)) { // another product, at its place
    of.erase(found);
    found = of.end();
  }
  if (found == of.end())
    found = of.try_emplace(&shape, shape, adds, a, b, c).first;
  return found->second;
}

// ---- products of f32

template <typename From> void widen(const matrix_view<const From> &from, float *to) {
  const int64_t lines = from.storage.row_major ? from.rows : from.columns;
  const int64_t length = from.storage.row_major ? from.columns : from.rows;
  for (int64_t line = 0; line < lines; ++line)
    convert_line(from.data + line * from.storage.leading, to + line * length, length);
}

template <typename From, typename To>
void multiply_widened(const tile_operands<From, To> &of, float beta) {
  const int64_t m = of.a.rows, k = of.a.columns, n = of.b.columns;
  constexpr bool rounds = !std::is_same_v<To, float>;
  auto *left = thread_memory<float>(static_cast<size_t>(m * k + k * n + (rounds ? m * n : 0)));
  float *right = left + m * k;
  widen(of.a, left);
  widen(of.b, right);
  float *sums = right + k * n;
  int64_t leading = n;
  if constexpr (!rounds) {
    sums = of.c.data;
    leading = of.c.storage.leading;
  }
  const dnnl_status_t status = dnnl_sgemm(
      of.a.storage.row_major ? 'N' : 'T', of.b.storage.row_major ? 'N' : 'T', m, n, k, 1.0f, left,
      of.a.storage.row_major ? k : m, right, of.b.storage.row_major ? n : k, beta, sums, leading);
  if (status != dnnl_success)
    throw std::runtime_error("oneDNN refused a matrix product, status " +
                             std::to_string(static_cast<int>(status)));
  if constexpr (rounds)
    for (int64_t i = 0; i < m; ++i)
      convert_line(sums + i * n, of.c.data + i * of.c.storage.leading, n);
}

template <typename From, typename To>
void run(const matmul_shape &shape, bool adds, const From *a, const From *b, To *c) {
  const product_tiles tiles(shape);
  prepared_product *primitives = nullptr;
  if constexpr (std::is_same_v<From, bfloat16>)
    primitives = multiplies_bfloat16() ? &prepared(shape, adds, a, b, c) : nullptr;
  tiles.for_each([&](int64_t index) {
    const tile_operands of(shape, tiles.at(index), tiles.batch(index), a, b, c);
    if constexpr (std::is_same_v<From, bfloat16>)
      if (primitives)
        return primitives->run(index, of);
    multiply_widened(of, adds ? 1.0f : 0.0f);
  });
}

} // namespace

template <typename Format, typename To>
void matmul(const matmul_shape &shape, const narrow_float<Format> *a, const narrow_float<Format> *b,
            To *c) {
  run(shape, false, a, b, c);
}
template <typename Format>
void matmul_add(const matmul_shape &shape, const narrow_float<Format> *a,
                const narrow_float<Format> *b, float *c) {
  run(shape, true, a, b, c);
}

template void matmul(const matmul_shape &, const bfloat16 *, const bfloat16 *, float *);
template void matmul(const matmul_shape &, const bfloat16 *, const bfloat16 *, bfloat16 *);
template void matmul_add(const matmul_shape &, const bfloat16 *, const bfloat16 *, float *);
template void matmul(const matmul_shape &, const float16 *, const float16 *, float *);
template void matmul(const matmul_shape &, const float16 *, const float16 *, float16 *);
template void matmul_add(const matmul_shape &, const float16 *, const float16 *, float *);

} // namespace trainc
