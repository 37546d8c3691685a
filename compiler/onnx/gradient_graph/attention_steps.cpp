// SPDX-License-Identifier: Apache-2.0
//
// The trainer computes attention and its gradient in tiles, by functions of the runtime that are
// written by hand. Here the gradient follows from the operations of attention as models write it,
// so that it judges that one.
#include "compiler/onnx/gradient_graph/backward_pass.h"
#include "compiler/onnx/gradient_graph/standard_form.h"
#include "dialects/nn/attention.h"
#include "dialects/nn/dropout.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;

namespace trainc {
namespace {

class WrittenOutAttention {
public:
  explicit WrittenOutAttention(nn::AttentionOp op)
      : op(op), at(op), b(at, withoutRole(op->getLoc())), sizes(op),
        sum(nn::tensorType(op.getLogSum()).getElementType()) {}

  void run() {
    for (Value operand : {op.getQ(), op.getK(), op.getV()})
      addLeaf(operand);
    for (Value mask : op.getMasks())
      addLeaf(mask);
    Operation *before = leaves.back().getDefiningOp();
    scaled = b.scale(b.matmul(wide(0), ofEachHead(wide(1)), false, true),
                     op.getScale().convertToDouble());
    Value weights =
        b.create<nn::SoftmaxOp>(hidden(masked(scaled)), static_cast<bool>(op.getMaskedToZero()));
    result = b.cast(b.matmul(dropped(weights), ofEachHead(wide(2))),
                    nn::tensorType(op.getResult()).getElementType());
    for (Operation *each = before->getNextNode(); each != op; each = each->getNextNode())
      operations.push_back(each);
    for (Operation *user : llvm::make_early_inc_range(op.getLogSum().getUsers()))
      replaceGradient(cast<nn::AttentionGradientOp>(user));
    op.getResult().replaceAllUsesWith(result);
    op->erase();
  }

private:
  /// A gradient is that of this attention alone.
  void addLeaf(Value operand) { leaves.push_back(b.create<nn::DetachOp>(operand)); }

  Value wide(size_t operand) { return b.cast(leaves[operand], sum); }

  /// Matrices of keys or values, repeated for the heads of queries that share them.
  Value ofEachHead(Value matrices) {
    if (sizes.sharing == 1)
      return matrices;
    SmallVector<int64_t> shape(nn::tensorType(matrices).getShape()), joined = shape, dimensions;
    const size_t head = shape.size() - 3;
    for (size_t d = 0; d < shape.size(); ++d)
      dimensions.push_back(static_cast<int64_t>(d <= head ? d : d + 1));
    shape.insert(shape.begin() + head + 1, sizes.sharing);
    joined[head] *= sizes.sharing;
    return b.reshape(b.broadcast(matrices, dimensions, shape), joined);
  }

  Value masked(Value scores) {
    constexpr size_t kFirstMask = 3;
    for (Value mask : ArrayRef(leaves).drop_front(kFirstMask))
      scores = b.add(scores, b.broadcastTo(mask, sizes.scores()));
    return scores;
  }

  /// Without the keys beyond the reach of a query.
  Value hidden(Value scores) {
    if (!op.getReach())
      return scores;
    auto indices = RankedTensorType::get({sizes.queries, sizes.keys}, at.getI64Type());
    Value query = b.create<nn::IotaOp>(indices, int64_t(0)),
          key = b.create<nn::IotaOp>(indices, int64_t(1));
    Value last = b.add(query, b.constant(static_cast<double>(sizes.reach), indices));
    Value isSeen = b.broadcastTo(b.create<nn::LessOrEqualOp>(key, last), sizes.scores());
    return b.select(isSeen, scores,
                    b.constant(-std::numeric_limits<double>::infinity(), scores.getType()));
  }

  Value dropped(Value weights) {
    if (sizes.dropped == 0)
      return weights;
    auto type = RankedTensorType::get(sizes.scores(), at.getI64Type());
    Value keys = op.getKey() ? b.broadcast(op.getKey(), {}, type.getShape()) : Value();
    Value random = b.create<nn::RandomBitsOp>(type, keys, sizes.stream, int64_t(nn::kDropoutBits));
    Value keep = nn::keptElements(b, random, sizes.dropped);
    return b.mul(weights, nn::dropoutMask(b, keep, sizes.dropped, nn::tensorType(weights)));
  }

  void replaceGradient(nn::AttentionGradientOp gradient) {
    OpBuilder here(gradient);
    nn::Builder g(here, gradient->getLoc());
    BackwardPass backward(g);
    backward.add(result, gradient.getDresult());
    backward.through(operations);
    SmallVector<Value> results;
    for (Value leaf : ArrayRef(leaves).take_front(3))
      results.push_back(backward.of(leaf));
    if (std::optional<ArrayRef<int64_t>> kept = gradient.getDmaskSizes()) {
      SmallVector<int64_t> added;
      for (auto [d, size] : llvm::enumerate(*kept))
        if (size == 1)
          added.push_back(static_cast<int64_t>(d));
      results.push_back(g.reshape(g.reduceSum(backward.of(scaled), added), *kept));
    }
    gradient->replaceAllUsesWith(results);
    gradient->erase();
  }

  nn::AttentionOp op;
  OpBuilder at;
  nn::Builder b;
  nn::AttentionSizes sizes;
  Type sum;
  SmallVector<Value> leaves; // of the operands
  Value scaled, result;
  SmallVector<Operation *> operations;
};

} // namespace

void writeOutAttention(func::FuncOp function) {
  for (auto op : llvm::make_early_inc_range(function.getOps<nn::AttentionOp>()))
    WrittenOutAttention(op).run();
}

} // namespace trainc
