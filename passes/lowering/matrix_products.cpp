// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and scatters as steps (matrix_products.h).
//
// Operands: the views above an operand are followed as far as the tensor there
// can still be read as a batch of strided matrices with one inner stride 1.
// Result: transposes and reshapes which alone use it are taken over, so that the
// product is written in the order its reader wants. Batch dimensions that
// continue the rows of one matrix are merged into it. A sum of two products is one
// product added to the other in place.
#include "passes/lowering/matrix_products.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lowering/value_views.h"
#include "llvm/ADT/SetVector.h"

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
  kernel::MatrixAttr attribute(MLIRContext *context) {
    SmallVector<int64_t> strides(tensor.strides.begin(), tensor.strides.end() - 2);
    return kernel::MatrixAttr::get(context, tensor.offset, strides, row(), column());
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

std::optional<Matrices> stridedMatrices(Value value, const Affine &position, const Sizes &space,
                                        int64_t rows, int64_t columns) {
  auto batch = batchPart(space, rows, columns);
  if (!batch)
    return std::nullopt;
  Sizes shape = *batch;
  shape.push_back(rows);
  shape.push_back(columns);
  auto tensor = planning::stridedTensor(position, space, shape);
  if (!tensor)
    return std::nullopt;
  Matrices matrices{value, std::move(*batch), std::move(*tensor)};
  return fitsLibrary(matrices, rows, columns) ? std::optional(matrices) : std::nullopt;
}

/// Position of `from`'s elements in `base`, some views above it. Splits `space` as needed.
std::optional<Affine> positionIn(Value base, Value from, Sizes &space) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    std::optional<Split> split;
    auto indices = planning::delinearise(planning::linearIndex(space, 0, space.size()), space,
                                         sizesOf(from), split);
    std::optional<IndexMap> map;
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

Matrices resolveOperand(Value operand, const Sizes &batch, int64_t rows, int64_t columns) {
  SmallVector<Value> chain{operand};
  while (isView(chain.back().getDefiningOp()))
    chain.push_back(chain.back().getDefiningOp()->getOperand(0));
  for (Value base : llvm::reverse(chain)) {
    // A splat has no memory; its broadcast is materialised instead.
    if (isSplatConstant(base.getDefiningOp()) && base != operand)
      continue;
    Sizes space = batch;
    space.push_back(rows);
    space.push_back(columns);
    auto position = positionIn(base, operand, space);
    if (!position)
      continue;
    if (auto matrices = stridedMatrices(base, *position, space, rows, columns))
      return *matrices;
  }
  llvm_unreachable("a tensor is a batch of contiguous matrices");
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
  Sizes shape = batch;
  shape.push_back(rows);
  shape.push_back(columns);
  for (Value final : llvm::reverse(chain)) {
    Sizes space = sizesOf(final);
    auto position = positionIn(result, final, space);
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
  llvm_unreachable("a product can be written in its own order");
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
      matrices->tensor.shape.erase(matrices->tensor.shape.begin() + d);
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
        matrices->tensor.shape.insert(matrices->tensor.shape.begin(), 1);
      }
    }
  }
};

/// Erases a converted operation, views below it up to `last`, and views above it that nobody uses.
void eraseWithViews(Operation *op, Value last) {
  for (Operation *view = last.getDefiningOp(); view != op;) {
    Operation *above = view->getOperand(0).getDefiningOp();
    view->erase();
    view = above;
  }
  llvm::SetVector<Operation *> views;
  auto collect = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (isView(operand.getDefiningOp()))
        views.insert(operand.getDefiningOp());
  };
  collect(op);
  op->erase();
  for (size_t i = 0; i < views.size(); ++i) // grows
    collect(views[i]);
  for (bool erased = true; erased;) {
    erased = false;
    for (Operation *view : llvm::to_vector(views))
      if (view->use_empty()) {
        views.remove(view);
        view->erase();
        erased = true;
      }
  }
}

void convert(nn::MatmulOp op) {
  Sizes a = sizesOf(op.getA()), c = sizesOf(op.getResult());
  size_t rank = c.size();
  int64_t m = c[rank - 2], n = c[rank - 1], k = op.getTransposeA() ? a[rank - 2] : a[rank - 1];
  auto resolve = [&](Value operand, const Sizes &batch) {
    Sizes own = sizesOf(operand);
    return resolveOperand(operand, batch, own[rank - 2], own[rank - 1]);
  };
  Product product{m, n, k, Sizes(c.begin(), c.end() - 2), {}, {}, {}};
  // Each may split the batch dimensions further, until all three agree.
  do {
    product.a = resolve(op.getA(), product.batch);
    product.b = resolve(op.getB(), product.a.batch);
    product.c = resolveResult(op.getResult(), product.b.batch, m, n);
    product.batch = product.c.batch;
  } while (product.a.batch != product.batch || product.b.batch != product.batch);
  if (op.getTransposeA())
    std::swap(product.a.row(), product.a.column());
  if (op.getTransposeB())
    std::swap(product.b.row(), product.b.column());
  product.simplify();

  OpBuilder builder(op);
  MLIRContext *context = op.getContext();
  auto step = builder.create<kernel::MatmulOp>(
      op.getLoc(), product.c.value.getType(), product.a.value, product.b.value, product.m,
      product.n, product.k, product.batch, product.a.attribute(context),
      product.b.attribute(context), product.c.attribute(context));
  product.c.value.replaceAllUsesWith(step.getOut());
  eraseWithViews(op, product.c.value);
}

/// A new tensor with the same elements: fuse gives it a kernel, since a step uses it.
Value copyOf(OpBuilder &builder, Location location, Value value) {
  return builder.create<nn::ReshapeOp>(location, value.getType(), value);
}

bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

/// A step may write over `value`: nobody else reads it and a step or kernel made it.
bool diesHere(Value value) {
  return value.hasOneUse() && value.getDefiningOp() && !isa<nn::ConstantOp>(value.getDefiningOp());
}

void convert(nn::ScatterAddOp op) {
  OpBuilder builder(op);
  Value init = op.getTable();
  if (isZero(init))
    init = Value();
  else if (!diesHere(init) || isView(init.getDefiningOp()))
    init = copyOf(builder, op.getLoc(), init);
  Sizes table = sizesOf(op.getTable());
  int64_t columns = planning::elementCount(Sizes(table.begin() + 1, table.end()));
  auto step = builder.create<kernel::ScatterAddOp>(
      op.getLoc(), op.getResult().getType(), withoutReshapes(op.getIndices()),
      withoutReshapes(op.getUpdates()), init, table[0], columns, ArrayAttr());
  op.getResult().replaceAllUsesWith(step.getOut());
  eraseWithViews(op, op.getResult());
}

/// add(product, other step's result): the product is added in place.
void accumulate(nn::AddOp add) {
  for (auto [own, other] : {std::pair(add.getB(), add.getA()), std::pair(add.getA(), add.getB())}) {
    auto product = own.getDefiningOp<kernel::MatmulOp>();
    if (!product || product.getInit() || product.hasEpilogue() || !own.hasOneUse() ||
        !other.hasOneUse() ||
        !isa_and_nonnull<kernel::MatmulOp, kernel::ScatterAddOp>(other.getDefiningOp()))
      continue;
    product->moveBefore(add);
    product.getInitMutable().assign(other);
    add.getResult().replaceAllUsesWith(product.getOut());
    add.erase();
    return;
  }
}

} // namespace

void formMatrixProducts(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  (void)runRegionDCE(rewriter, function->getRegions());
  SmallVector<Operation *> operations;
  for (Operation &op : function.front())
    if (isa<nn::MatmulOp, nn::ScatterAddOp, nn::AddOp>(op))
      operations.push_back(&op);
  for (Operation *op : operations) {
    if (auto matmul = dyn_cast<nn::MatmulOp>(op))
      convert(matmul);
    else if (auto scatter = dyn_cast<nn::ScatterAddOp>(op))
      convert(scatter);
    else
      accumulate(cast<nn::AddOp>(op));
  }
}

} // namespace trainc
