// SPDX-License-Identifier: Apache-2.0
//
// nn.pad, and ONNX Pad in every mode.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include <cstring>

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal croppingModes({"Pad"}, "negative pads of other modes than constant");
static const OnnxRefusal
    unknownValue({"Pad"}, "input 2 that is not known when the model is compiled, of mode constant");

// Amounts for all dimensions, [before..., after...]; fails with an error.
static FailureOr<SmallVector<int64_t>> padAmounts(OnnxNode &node, int64_t rank) {
  auto amounts = node.opset() < 11 ? node.integers("pads") : node.integers(1);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq(rank));
  if (node.hasInput(3))
    axes = *node.integers(3);
  if (amounts->size() != 2 * axes.size())
    return node.error("expects " + llvm::Twine(2 * axes.size()) + " pads, found " +
                      llvm::Twine(amounts->size()));
  SmallVector<int64_t> all(2 * rank, 0);
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (axis < -rank || axis >= rank)
      return node.error("axis " + llvm::Twine(axis) + " is out of range for rank " +
                        llvm::Twine(rank));
    int64_t dimension = axis < 0 ? axis + rank : axis;
    all[dimension] = (*amounts)[index];
    all[rank + dimension] = (*amounts)[axes.size() + index];
  }
  for (int64_t &amount : all) {
    if (amount > kLargestTensor)
      return node.error("pads by " + llvm::Twine(amount) +
                        ", above the largest tensor, 2^40 elements");
    amount = std::max(amount, -kLargestTensor); // no tensor has more to crop
  }
  return all;
}

static FailureOr<double> padValue(OnnxNode &node) {
  if (node.opset() < 11)
    return node.real("value", 0);
  if (!node.hasInput(2))
    return 0.0;
  return node.knownNumber(2, unknownValue.told("padding value"));
}

// Elements of x itself before and after it along one dimension.
static Value extended(Builder &builder, Value x, int64_t dimension, int64_t before, int64_t after,
                      StringRef mode) {
  int64_t size = tensorType(x).getDimSize(dimension);
  auto side = [&](int64_t count, bool isFront) {
    if (mode == "wrap")
      return builder.slice(x, dimension, isFront ? size - count : 0, count);
    if (mode == "reflect")
      return builder.create<ReverseOp>(
          builder.slice(x, dimension, isFront ? 1 : size - 1 - count, count), dimension);
    SmallVector<int64_t> shape(tensorType(x).getShape());
    shape[dimension] = count;
    return builder.broadcastTo(builder.slice(x, dimension, isFront ? 0 : size - 1, 1), shape);
  };
  SmallVector<Value> parts{x};
  if (before > 0)
    parts.insert(parts.begin(), side(before, true));
  if (after > 0)
    parts.push_back(side(after, false));
  return builder.create<ConcatOp>(ValueRange(parts), dimension);
}

// The modes reflect, edge and wrap: a dimension after the other, so that corners are what both say.
static OnnxResults padWithElements(OnnxNode &node, ArrayRef<int64_t> amounts, StringRef mode) {
  Value x = node.input(0);
  SmallVector<int64_t> sizes(tensorType(x).getShape());
  int64_t rank = sizes.size();
  for (int64_t i = 0; i < rank; ++i) {
    int64_t before = amounts[i], after = amounts[rank + i];
    int64_t most = mode == "reflect" ? sizes[i] - 1 : mode == "wrap" ? sizes[i] : kLargestTensor;
    if (before < 0 || after < 0)
      return node.error(croppingModes.told("crops, which mode '" + mode + "' does not support"),
                        "a Slice in front of the node");
    if (std::max(before, after) > most || (sizes[i] == 0 && before + after > 0))
      return node.error("pads by " + llvm::Twine(std::max(before, after)) + " along dimension " +
                        llvm::Twine(i) + " of size " + llvm::Twine(sizes[i]) + ", mode '" + mode +
                        "' has no more than " + llvm::Twine(std::max<int64_t>(most, 0)));
    sizes[i] += before + after;
  }
  if (failed(countElements(node, sizes)))
    return failure();
  for (int64_t i = 0; i < rank; ++i)
    if (amounts[i] > 0 || amounts[rank + i] > 0)
      x = extended(node.builder(), x, i, amounts[i], amounts[rank + i], mode);
  return SmallVector<Value>{x};
}

static OnnxResults importPad(OnnxNode &node) {
  Builder &builder = node.builder();
  std::string mode = node.string("mode", "constant");
  Value x = node.input(0);
  int64_t rank = tensorType(x).getRank();
  auto amounts = padAmounts(node, rank);
  if (failed(amounts))
    return failure();
  if (mode != "constant")
    return padWithElements(node, *amounts, mode);
  auto value = padValue(node);
  if (failed(value))
    return failure();
  // A negative pad crops.
  SmallVector<int64_t> starts(rank, 0), sizes(tensorType(x).getShape()), strides(rank, 1);
  SmallVector<int64_t> low(rank), high(rank), interior(rank, 0);
  for (int64_t i = 0; i < rank; ++i) {
    int64_t before = (*amounts)[i], after = (*amounts)[rank + i];
    starts[i] = std::max<int64_t>(0, -before);
    sizes[i] -= starts[i] + std::max<int64_t>(0, -after);
    low[i] = std::max<int64_t>(0, before);
    high[i] = std::max<int64_t>(0, after);
    if (sizes[i] < 0)
      return node.error("crops everything along dimension " + llvm::Twine(i));
  }
  if (ArrayRef(sizes) != tensorType(x).getShape())
    x = builder.create<SliceOp>(x, starts, sizes, strides);
  for (int64_t i = 0; i < rank; ++i)
    sizes[i] += low[i] + high[i];
  if (failed(countElements(node, sizes)))
    return failure();
  Value padded = builder.create<PadOp>(x, low, high, interior);
  if (*value == 0)
    return SmallVector<Value>{padded};
  Value inside = builder.constant(1, tensorType(x).clone(builder.op().getI1Type()));
  inside = builder.create<PadOp>(inside, low, high, interior);
  return SmallVector<Value>{
      builder.select(inside, padded, builder.constant(*value, padded.getType()))};
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                      Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  for (ArrayRef<int64_t> list : {adaptor.getLow(), adaptor.getHigh(), adaptor.getInterior()})
    if (static_cast<int64_t>(list.size()) != type.getRank() ||
        llvm::any_of(list, [](int64_t amount) { return amount < 0; })) // pad-c1
      return emitOptionalError(
          location, "low, high and interior have one nonnegative entry per dimension of ", type);
  SmallVector<int64_t> shape(type.getShape());
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] += adaptor.getLow()[i] + adaptor.getHigh()[i] +
                std::max<int64_t>(0, shape[i] - 1) * adaptor.getInterior()[i];
  types.push_back(type.clone(shape));
  return success();
}

LogicalResult PadOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                   const llvm::SmallBitVector &,
                                   SmallVectorImpl<Value> &operandGradients) {
  SmallVector<int64_t> strides;
  for (int64_t amount : getInterior())
    strides.push_back(amount + 1);
  operandGradients.assign({builder.create<SliceOp>(resultGradients[0], getLow(),
                                                   getX().getType().getShape(), strides)});
  return success();
}

double PadOp::flops() { return 0; }

FailureOr<Tensor> PadOp::interpret(ArrayRef<Tensor> operands) {
  Tensor result(getResult().getType());
  ArrayRef<int64_t> shape = getX().getType().getShape();
  SmallVector<int64_t> from = computeStrides(shape), to = computeStrides(result.shape());
  int64_t width = result.width();
  for (int64_t i = 0, count = operands[0].count(); i < count; ++i) {
    int64_t place = 0;
    for (auto [d, stride] : llvm::enumerate(from))
      place += (getLow()[d] + i / stride % shape[d] * (getInterior()[d] + 1)) * to[d];
    std::memcpy(result.data() + place * width, operands[0].at(i), width);
  }
  return result;
}

// Its sizes, value and axes stand after the input.
static OnnxRegistration pad = OnnxRegistration("Pad", 2, importPad, settingsFrom<1>)
                                  .takes("mode", {"constant", "reflect", "edge", "wrap"})
                                  .mustKnow(1, "pads")
                                  .mustKnow(3, "axes");

} // namespace trainc::nn
