// SPDX-License-Identifier: Apache-2.0
//
// Products of strided matrices (matrix_products.h).
//
// Operands: the views above an operand are followed as far as the tensor there
// can still be read as a batch of strided matrices with one inner stride 1.
// Result: transposes and reshapes which alone use it are taken over, so that the
// product is written in the order its reader wants. Batch dimensions that
// continue the rows of one matrix are merged into it.
#include "passes/kernels/matrix_products.h"
#include "dialects/errors/internal_error.h"
#include "passes/kernels/value_views.h"

using namespace mlir;

namespace trainc {
namespace {

using planning::Affine;
using planning::IndexMap;
using planning::Sizes;
using planning::Split;
using planning::StridedTensor;

/// A batch of matrices in memory: strides of batch dimensions, rows, columns.
struct Matrices {
  Value value;
  Sizes batch;
  StridedTensor tensor;

  int64_t &row() { return tensor.strides[batch.size()]; }
  int64_t &column() { return tensor.strides[batch.size() + 1]; }
  nn::StridedMatrices strided() {
    SmallVector<int64_t> strides(tensor.strides.begin(), tensor.strides.end() - 2);
    return {value,
            kernel::MatrixAttr::get(value.getContext(), tensor.offset, strides, row(), column())};
  }
};

/// What a library's product takes: one inner stride 1, the other not shorter
/// than a line. Strides along a size of 1 do not matter and are made to fit.
bool fitsLibrary(Matrices &matrices, int64_t rows, int64_t columns) {
  int64_t &row = matrices.row(), &column = matrices.column();
  if (columns == 1 && rows == 1)
    row = column = 1;
  else if (columns == 1)
    column = row == 1 ? rows : 1;
  else if (rows == 1)
    row = column == 1 ? columns : 1;
  if (column == 1 && row >= columns)
    return true;
  return row == 1 && column >= rows;
}

/// Batch sizes of the space in front of the inner two; nothing where a split
/// went into rows or columns and left no common boundary.
std::optional<Sizes> batchPart(const Sizes &space, int64_t rows, int64_t columns) {
  size_t end = space.size();
  for (int64_t size : {columns, rows}) {
    int64_t covered = 1;
    while (covered < size && end > 0)
      covered *= space[--end];
    if (covered != size)
      return std::nullopt;
    if (size == 1 && end > 0 && space[end - 1] == 1)
      --end;
  }
  return Sizes(space.begin(), space.begin() + end);
}

/// The sizes of a batch of matrices.
Sizes withMatrix(Sizes batch, int64_t rows, int64_t columns) {
  batch.insert(batch.end(), {rows, columns});
  return batch;
}

std::optional<Matrices> stridedMatrices(Value value, const Affine &position, const Sizes &space,
                                        int64_t rows, int64_t columns, bool anyStrides = false) {
  auto batch = batchPart(space, rows, columns);
  if (!batch)
    return std::nullopt;
  auto tensor = planning::stridedTensor(position, space, withMatrix(*batch, rows, columns));
  if (!tensor)
    return std::nullopt;
  Matrices matrices{value, std::move(*batch), std::move(*tensor)};
  return anyStrides || fitsLibrary(matrices, rows, columns) ? std::optional(matrices)
                                                            : std::nullopt;
}

/// Position of `from`'s elements in `base`, some views above it, where the point of `space` is
/// that of `shape`, to which `from` broadcasts. Splits `space` as needed.
std::optional<Affine> positionIn(Value base, Value from, Sizes &space, const Sizes &shape) {
  Sizes own = sizesOf(from);
  for (int attempt = 0; attempt < 16; ++attempt) {
    std::optional<Split> split;
    auto indices =
        planning::delinearise(planning::linearIndex(space, 0, space.size()), space, shape, split);
    std::optional<IndexMap> map;
    for (size_t d = 0; indices && d < own.size(); ++d)
      if (own[d] == 1)
        (*indices)[d] = Affine();
    if (indices)
      map = IndexMap{space, *indices};
    for (Value value = from; map && value != base; value = value.getDefiningOp()->getOperand(0))
      map = operandMap(value.getDefiningOp(), *map, split);
    if (map)
      return map->linear(sizesOf(base));
    if (!split)
      return std::nullopt;
    applySplit(space, *split);
  }
  return std::nullopt;
}

Matrices resolveOperand(Value operand, const Sizes &batch, int64_t rows, int64_t columns,
                        const Sizes &shape, bool anyStrides = false) {
  SmallVector<Value> chain{operand};
  while (isView(chain.back().getDefiningOp()))
    chain.push_back(chain.back().getDefiningOp()->getOperand(0));
  for (Value base : llvm::reverse(chain)) {
    // A splat has no memory; its broadcast is materialised instead.
    if (isSplatConstant(base.getDefiningOp()) && base != operand)
      continue;
    Sizes space = withMatrix(batch, rows, columns);
    auto position = positionIn(base, operand, space, shape);
    if (!position)
      continue;
    if (auto matrices = stridedMatrices(base, *position, space, rows, columns, anyStrides))
      return *matrices;
  }
  internalError(operand.getDefiningOp(), "a tensor is a batch of contiguous matrices");
}

/// Splits dimensions of `tensor` until those of `shape` are boundaries of it.
bool refine(StridedTensor &tensor, const Sizes &shape) {
  while (true) {
    std::optional<Split> split;
    Sizes &space = tensor.shape;
    if (planning::delinearise(planning::linearIndex(space, 0, space.size()), space, shape, split))
      return true;
    if (!split)
      return false;
    size_t d = split->dimension;
    tensor.strides.insert(tensor.strides.begin() + d, tensor.strides[d] * split->inner);
    applySplit(space, *split);
  }
}

Matrices resolveResult(Value result, const Sizes &batch, int64_t rows, int64_t columns) {
  SmallVector<Value> chain{result};
  while (chain.back().hasOneUse()) {
    Operation *user = *chain.back().getUsers().begin();
    if (!isa<nn::ReshapeOp, nn::TransposeOp>(user))
      break;
    chain.push_back(user->getResult(0));
  }
  const Sizes shape = withMatrix(batch, rows, columns);
  for (Value final : llvm::reverse(chain)) {
    Sizes space = sizesOf(final);
    auto position = positionIn(result, final, space, sizesOf(final));
    if (!position)
      continue;
    auto inverse = planning::invertPermutation(*position, space);
    if (!inverse || !refine(*inverse, shape))
      continue;
    Affine back{0, inverse->strides};
    const Sizes &refined = inverse->shape;
    if (auto matrices = stridedMatrices(final, back, refined, rows, columns))
      return *matrices;
  }
  internalError(result.getDefiningOp(), "a product can be written in its own order");
}

/// The product's dimensions; merges and drops batch dimensions.
struct Product {
  int64_t m, n, k;
  Sizes batch;
  Matrices a, b, c;

  void eraseBatch(size_t d) {
    batch.erase(batch.begin() + d);
    for (Matrices *matrices : {&a, &b, &c}) {
      matrices->batch.erase(matrices->batch.begin() + d);
      matrices->tensor.strides.erase(matrices->tensor.strides.begin() + d);
    }
  }

  void simplify() {
    for (size_t d = batch.size(); d-- > 0;)
      if (batch[d] == 1)
        eraseBatch(d);
    for (size_t d = batch.size(); d-- > 1;) {
      auto joins = [&](Matrices &x) {
        return x.tensor.strides[d - 1] == x.tensor.strides[d] * batch[d];
      };
      if (!joins(a) || !joins(b) || !joins(c))
        continue;
      batch[d] *= batch[d - 1];
      eraseBatch(d - 1);
    }
    // The batch continues the rows: one larger matrix.
    while (!batch.empty()) {
      size_t d = batch.size() - 1;
      auto continues = [&](Matrices &x) { return x.tensor.strides[d] == m * x.row(); };
      if (b.tensor.strides[d] != 0 || !continues(a) || !continues(c) || c.column() != 1)
        break;
      m *= batch[d];
      eraseBatch(d);
    }
    if (batch.empty()) {
      batch.push_back(1);
      for (Matrices *matrices : {&a, &b, &c}) {
        matrices->batch.push_back(1);
        matrices->tensor.strides.insert(matrices->tensor.strides.begin(), 0);
      }
    }
  }
};

/// The dimensions of `batch` without the last ones, of `sharing` elements, which have one matrix.
Sizes withoutSharing(const Sizes &batch, int64_t sharing) {
  size_t own = batch.size();
  for (int64_t count = 1; count < sharing;)
    count *= batch[--own];
  return Sizes(batch.begin(), batch.begin() + own);
}

/// The tensor's matrices for all of the batch, which may be split further.
Matrices resolve(const nn::BatchedMatrices &tensor, Sizes &batch) {
  Sizes own = withoutSharing(batch, tensor.sharing);
  Sizes sharing(batch.begin() + own.size(), batch.end());
  const bool broadcasts = tensor.use == nn::BatchedMatrices::broadcast;
  Sizes shape =
      broadcasts ? Sizes(tensor.shape.begin(), tensor.shape.end()) : sizesOf(tensor.value);
  Matrices found =
      tensor.use == nn::BatchedMatrices::written
          ? resolveResult(tensor.value, own, tensor.rows, tensor.columns)
          : resolveOperand(tensor.value, own, tensor.rows, tensor.columns, shape, broadcasts);
  Sizes &strides = found.tensor.strides;
  strides.insert(strides.end() - 2, sharing.size(), 0);
  found.batch.insert(found.batch.end(), sharing.begin(), sharing.end());
  batch = found.batch;
  return found;
}

/// Drops dimensions of one element, and joins neighbours where the strides of all allow it, but not
/// across `boundary`.
void simplifyBatch(Sizes &batch, std::vector<Matrices> &all, size_t boundary) {
  for (size_t d = batch.size(); d-- > 0;) {
    auto joins = [&](Matrices &x) {
      return x.tensor.strides[d - 1] == x.tensor.strides[d] * batch[d];
    };
    const bool joined = batch[d] != 1;
    if (joined && (d == 0 || d == boundary || !llvm::all_of(all, joins)))
      continue;
    if (joined)
      batch[d - 1] *= batch[d];
    batch.erase(batch.begin() + d);
    for (Matrices &matrices : all) {
      Sizes &strides = matrices.tensor.strides;
      strides.erase(strides.begin() + (joined ? d - 1 : d));
      matrices.batch = batch;
    }
  }
}

} // namespace

nn::StridedProduct stridedProduct(Value a, bool transposeA, Value b, bool transposeB,
                                  Value result) {
  Sizes shape = sizesOf(a), c = sizesOf(result);
  size_t rank = c.size();
  int64_t m = c[rank - 2], n = c[rank - 1], k = transposeA ? shape[rank - 2] : shape[rank - 1];
  auto resolve = [&](Value operand, const Sizes &batch) {
    Sizes own = sizesOf(operand);
    return resolveOperand(operand, batch, own[rank - 2], own[rank - 1], own);
  };
  Product product{m, n, k, Sizes(c.begin(), c.end() - 2), {}, {}, {}};
  // Each may split the batch dimensions further, until all three agree.
  do {
    product.a = resolve(a, product.batch);
    product.b = resolve(b, product.a.batch);
    product.c = resolveResult(result, product.b.batch, m, n);
    product.batch = product.c.batch;
  } while (product.a.batch != product.batch || product.b.batch != product.batch);
  if (transposeA)
    std::swap(product.a.row(), product.a.column());
  if (transposeB)
    std::swap(product.b.row(), product.b.column());
  product.simplify();
  return {product.m,           product.n,
          product.k,           SmallVector<int64_t>(product.batch.begin(), product.batch.end()),
          product.a.strided(), product.b.strided(),
          product.c.strided()};
}

nn::StridedBatch stridedBatch(ArrayRef<int64_t> wanted, ArrayRef<nn::BatchedMatrices> tensors) {
  Sizes batch(wanted.begin(), wanted.end()), before;
  std::vector<Matrices> all;
  do { // each may split the batch further, until all agree
    before = batch;
    all.clear();
    for (const nn::BatchedMatrices &tensor : tensors)
      all.push_back(resolve(tensor, batch));
  } while (batch != before);
  int64_t sharing = 1;
  for (const nn::BatchedMatrices &tensor : tensors)
    sharing = std::max(sharing, tensor.sharing);
  simplifyBatch(batch, all, withoutSharing(batch, sharing).size());
  nn::StridedBatch result{SmallVector<int64_t>(batch.begin(), batch.end()), {}};
  for (Matrices &matrices : all)
    result.tensors.push_back(matrices.strided());
  return result;
}

} // namespace trainc
