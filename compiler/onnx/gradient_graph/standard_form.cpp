// SPDX-License-Identifier: Apache-2.0
//
// Each rule builds what takes an operation's place. It may use operations that have a rule
// themselves: rules apply until none does.
#include "compiler/onnx/gradient_graph/standard_form.h"
#include "compiler/onnx/gradient_graph/operators.h"
#include "dialects/nn/expression.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace mlir;

namespace trainc {
namespace {

using Shape = SmallVector<int64_t>;

Shape shapeOf(Value value) { return Shape(nn::tensorType(value).getShape()); }

// ---- pointwise

/// The scalar function by operators of ONNX; empty where it has none or needs none.
StringRef expressionOf(nn::PointwiseOpInterface op) {
  // Where the sum is 1 its rounding is undone: Kahan's formulas.
  static const StringMap<StringRef> own = {
      {"log1p", "select(abs(x) > 0.5, log(1 + x), select(1 + x == 1, x, "
                "log(1 + x) * (x / ((1 + x) - 1))))"},
      {"expm1", "select(abs(x) > 0.5, exp(x) - 1, select(exp(x) == 1, x, "
                "(exp(x) - 1) * (x / log(exp(x)))))"}};
  if (isOperator(op))
    return {};
  StringRef value = op.valueExpression();
  return value.empty() ? own.lookup(op->getName().stripDialect()) : value;
}

Value ofPointwise(nn::Builder &b, nn::PointwiseOpInterface op) {
  StringRef text = expressionOf(op);
  if (text.empty())
    return nullptr;
  StringMap<Value> operands;
  for (auto [name, operand] : zip_equal(op.operandNames(), op->getOperands()))
    operands[name] = operand;
  return nn::buildExpression(b, nn::parseExpression(text), operands);
}

// ---- windows

/// Zeros between elements: each becomes a row that is filled up.
Value ofPad(nn::Builder &b, nn::PadOp op) {
  ArrayRef<int64_t> low = op.getLow(), high = op.getHigh(), interior = op.getInterior();
  if (all_of(interior, [](int64_t each) { return each == 0; }))
    return nullptr;
  Value x = op.getX();
  for (auto [d, between] : enumerate(interior)) {
    Shape shape = shapeOf(x), rows = shape;
    if (between == 0 || shape[d] == 0)
      continue;
    rows.insert(rows.begin() + static_cast<int64_t>(d) + 1, 1);
    Shape none(rows.size(), 0), behind = none;
    behind[d + 1] = between;
    Value filled = b.create<nn::PadOp>(b.reshape(x, rows), none, behind, none);
    shape[d] *= between + 1;
    x = b.slice(b.reshape(filled, shape), static_cast<int64_t>(d), 0, shape[d] - between);
  }
  return b.create<nn::PadOp>(x, low, high, Shape(low.size(), 0));
}

/// A convolution of x with dy whose batch is that of channels, and which sums over samples.
Value ofWeightGradient(nn::Builder &b, nn::ConvolutionWeightGradientOp op) {
  int64_t groups = static_cast<int64_t>(op.getGroups());
  Shape x = shapeOf(op.getX());
  const int64_t samples = x[0], channels = x[1] / groups;
  Shape split{samples, groups, channels}, order{2, 1, 0}, joined{channels, groups * samples};
  for (size_t d = 2; d < x.size(); ++d) {
    split.push_back(x[d]);
    order.push_back(static_cast<int64_t>(d) + 1);
    joined.push_back(x[d]);
  }
  Value left = b.reshape(b.transpose(b.reshape(op.getX(), split), order), joined);
  Value right = b.exchange(op.getDy(), 0, 1);
  Value all = b.create<nn::ConvolutionOp>(left, right, op.getDilations(), op.getStrides(),
                                          op.getPads(), static_cast<uint64_t>(groups));
  for (auto [d, size] : enumerate(op.getSizes())) // what no window of x reached lies behind
    all = b.slice(all, static_cast<int64_t>(d) + 2, 0, size);
  return b.exchange(all, 0, 1);
}

/// Planes as samples of one channel, and a window of ones.
Value ones(nn::Builder &b, Value x, ArrayRef<int64_t> kernel) {
  Shape shape{1, 1};
  shape.append(kernel.begin(), kernel.end());
  return b.constant(1, nn::tensorType(x).clone(shape));
}

Value planesOf(nn::Builder &b, Value x) {
  Shape shape = shapeOf(x);
  shape[0] *= shape[1];
  shape[1] = 1;
  return b.reshape(x, shape);
}

Value ofSumPool(nn::Builder &b, nn::SumPoolOp op) {
  Value sums =
      b.create<nn::ConvolutionOp>(planesOf(b, op.getX()), ones(b, op.getX(), op.getKernel()),
                                  op.getStrides(), op.getDilations(), op.getPads(), uint64_t(1));
  return b.reshape(sums, shapeOf(op.getResult()));
}

Value ofSumPoolGradient(nn::Builder &b, nn::SumPoolGradientOp op) {
  Value sums = b.create<nn::ConvolutionInputGradientOp>(
      planesOf(b, op.getDy()), ones(b, op.getDy(), op.getKernel()), op.getStrides(),
      op.getDilations(), op.getPads(), uint64_t(1), op.getSizes());
  return b.reshape(sums, shapeOf(op.getResult()));
}

// ---- parts of flat tensors

/// First and last element, of each part; none where they are not known.
SmallVector<std::pair<int64_t, int64_t>> segmentsOf(Value table) {
  SmallVector<std::pair<int64_t, int64_t>> segments;
  DenseElementsAttr known;
  if (!matchPattern(table, m_Constant(&known)))
    return segments;
  std::vector<int64_t> bounds = nn::Tensor::of(known).integers();
  for (size_t i = 0; i + 1 < bounds.size(); i += 2)
    segments.emplace_back(bounds[i], bounds[i + 1]);
  return segments;
}

Value joinedParts(nn::Builder &b, ArrayRef<Value> parts) {
  return parts.size() == 1 ? parts.front() : b.create<nn::ConcatOp>(parts, int64_t(0));
}

Value ofSegmentNorms(nn::Builder &b, nn::SegmentNormsOp op) {
  SmallVector<Value> norms;
  for (auto [begin, end] : segmentsOf(op.getSegments())) {
    Value part = b.cast(b.slice(op.getX(), 0, begin, end - begin), b.op().getF64Type());
    Value norm = b.create<nn::SqrtOp>(b.reduceSum(b.mul(part, part), {0}));
    norms.push_back(b.reshape(norm, {1}));
  }
  return norms.empty() ? nullptr : joinedParts(b, norms);
}

Value ofSegmentBroadcast(nn::Builder &b, nn::SegmentBroadcastOp op) {
  SmallVector<Value> parts;
  int64_t filled = 0, number = 0;
  auto pad = [&](int64_t end) {
    if (end > filled)
      parts.push_back(b.constant(0, op.getResult().getType().clone(Shape{end - filled})));
  };
  for (auto [begin, end] : segmentsOf(op.getSegments())) {
    pad(begin);
    Value value = b.slice(op.getValues(), 0, number++, 1);
    parts.push_back(b.broadcast(value, {0}, {end - begin}));
    filled = end;
  }
  pad(static_cast<int64_t>(op.getElements()));
  return number == 0 ? nullptr : joinedParts(b, parts);
}

/// Nothing where no rule applies.
SmallVector<Value> replacementOf(nn::Builder &b, Operation *op) {
  if (auto mean = dyn_cast<nn::MeanOverRanksOp>(op)) // there is one rank
    return {mean.getX(), b.constant(1, mean.getRanks().getType())};
  Value one =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](nn::PadOp pad) { return ofPad(b, pad); })
          .Case([&](nn::SoftmaxOp softmax) { return softmax.decompose(b).front(); })
          .Case(
              [&](nn::ConvolutionWeightGradientOp product) { return ofWeightGradient(b, product); })
          .Case([&](nn::SumPoolOp pool) { return ofSumPool(b, pool); })
          .Case([&](nn::SumPoolGradientOp pool) { return ofSumPoolGradient(b, pool); })
          .Case([&](nn::SegmentNormsOp norms) { return ofSegmentNorms(b, norms); })
          .Case([&](nn::SegmentBroadcastOp spread) { return ofSegmentBroadcast(b, spread); })
          .Case([&](nn::RandomBitsOp bits) { return randomNumbers(b, bits); })
          .Case([&](nn::PointwiseOpInterface pointwise) { return ofPointwise(b, pointwise); })
          .Default(Value());
  return one ? SmallVector<Value>{one} : SmallVector<Value>{};
}

} // namespace

/// From the last to the first, so that what only they read goes too.
static void eraseUnread(func::FuncOp function) {
  for (Operation &op : make_early_inc_range(reverse(function.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void bringToStandardForm(func::FuncOp function) {
  writeOutRecurrences(function);
  writeOutAttention(function);
  eraseUnread(function);
  bool changed = true;
  while (changed) {
    changed = false;
    for (Operation &op : make_early_inc_range(function.front().without_terminator())) {
      OpBuilder at(&op);
      nn::Builder b(at, op.getLoc());
      SmallVector<Value> values = replacementOf(b, &op);
      if (values.empty())
        continue;
      op.replaceAllUsesWith(values);
      op.erase();
      changed = true;
    }
  }
}

} // namespace trainc
