// SPDX-License-Identifier: Apache-2.0
//
// nn.slice; ONNX Slice with starts, ends, axes and steps known at compile time.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_slice.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

namespace {
struct Bounds {
  SmallVector<int64_t> starts, ends, axes, steps;
};
} // namespace

static LogicalResult differInLength(OnnxNode &node, const char *what, size_t found, size_t starts) {
  return node.error("it has " + llvm::Twine(found) + " " + what + " for " + llvm::Twine(starts) +
                    " starts");
}

// Below opset 10 the bounds are attributes, then inputs.
static FailureOr<Bounds> readBounds(OnnxNode &node) {
  bool attributes = node.opset() < 10;
  auto list = [&](StringRef name, unsigned index) {
    return attributes ? node.integers(name) : node.integers(index);
  };
  auto given = [&](StringRef name, unsigned index) {
    return attributes ? node.hasAttribute(name) : node.hasInput(index);
  };
  auto starts = list("starts", 1), ends = list("ends", 2);
  if (starts->size() != ends->size())
    return differInLength(node, "ends", ends->size(), starts->size());
  Bounds bounds{*starts, *ends, llvm::to_vector(llvm::seq<int64_t>(0, starts->size())),
                SmallVector<int64_t>(starts->size(), 1)};
  if (given("axes", 3)) {
    auto axes = list("axes", 3);
    if (axes->size() != starts->size())
      return differInLength(node, "axes", axes->size(), starts->size());
    bounds.axes = *axes;
  }
  if (!attributes && node.hasInput(4)) {
    auto steps = node.integers(4);
    if (steps->size() != starts->size())
      return differInLength(node, "steps", steps->size(), starts->size());
    bounds.steps = *steps;
  }
  return bounds;
}

static OnnxResults importSlice(OnnxNode &node) {
  auto bounds = readBounds(node);
  if (failed(bounds))
    return failure();
  Value x = node.input(0);
  auto type = tensorType(x);
  int64_t rank = type.getRank();
  SmallVector<int64_t> starts(rank, 0), sizes(type.getShape()), strides(rank, 1);
  for (size_t i = 0; i < bounds->starts.size(); ++i) {
    int64_t start = bounds->starts[i], end = bounds->ends[i], axis = bounds->axes[i],
            step = bounds->steps[i];
    if (axis < -rank || axis >= rank)
      return node.error("axis " + llvm::Twine(axis) + " is out of range for rank " +
                        llvm::Twine(rank));
    if (step == 0)
      return node.error("a step is 0");
    int64_t dimension = axis < 0 ? axis + rank : axis, size = type.getDimSize(dimension);
    SliceRange range = sliceRange(start, end, step, size);
    starts[dimension] = range.first;
    sizes[dimension] = range.count;
    strides[dimension] = range.count <= 1 ? 1 : step;
  }
  if (ArrayRef(sizes) == type.getShape() &&
      llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
    return SmallVector<Value>{x};
  return SmallVector<Value>{node.builder().create<SliceOp>(x, starts, sizes, strides)};
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  for (ArrayRef<int64_t> list : {adaptor.getStarts(), adaptor.getSizes(), adaptor.getStrides()})
    if (static_cast<int64_t>(list.size()) != type.getRank()) // slice-c1
      return emitOptionalError(location,
                               "starts, sizes and strides have one entry per dimension of ", type);
  for (int64_t i = 0; i < type.getRank(); ++i) {
    int64_t start = adaptor.getStarts()[i], size = adaptor.getSizes()[i],
            stride = adaptor.getStrides()[i];
    int64_t last = start + (size - 1) * stride, limit = type.getDimSize(i);
    bool outside = size > 0 && (start < 0 || start >= limit || last < 0 || last >= limit);
    if (stride == 0 || size < 0 || outside)
      return emitOptionalError(location, "dimension ", i, " reads ", size, " elements from ", start,
                               " by stride ", stride, " of ", limit); // slice-c2
  }
  types.push_back(type.clone(adaptor.getSizes()));
  return success();
}

LogicalResult SliceOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                     const llvm::SmallBitVector &,
                                     SmallVectorImpl<Value> &operandGradients) {
  auto type = getX().getType();
  Value dy = resultGradients[0];
  SmallVector<int64_t> low, high, interior, reversed;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    int64_t first = getStarts()[i], last = first + (getSizes()[i] - 1) * getStrides()[i];
    if (last < first) { // a negative stride: the elements reversed, by the positive one
      reversed.push_back(i);
      std::swap(first, last);
    }
    low.push_back(first);
    high.push_back(type.getDimSize(i) - 1 - last);
    interior.push_back(getSizes()[i] > 1 ? std::abs(getStrides()[i]) - 1 : 0);
  }
  if (!reversed.empty())
    dy = builder.create<ReverseOp>(dy, reversed);
  operandGradients.assign({builder.create<PadOp>(dy, low, high, interior)});
  return success();
}

double SliceOp::flops() { return 0; }

FailureOr<Tensor> SliceOp::interpret(ArrayRef<Tensor> operands) {
  SmallVector<int64_t> strides = computeStrides(getX().getType().getShape());
  int64_t offset = 0;
  for (auto [i, stride] : llvm::enumerate(strides)) {
    offset += getStarts()[i] * stride;
    stride *= getStrides()[i];
  }
  return operands[0].moved(getSizes(), offset, strides);
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  auto type = getResult().getType();
  bool forward = llvm::all_of(llvm::zip_equal(getStrides(), type.getShape()), [](auto pair) {
    return std::get<0>(pair) > 0 || std::get<1>(pair) == 1;
  });
  if (getX().getType() == type && forward)
    return getX();
  if (auto splat = llvm::dyn_cast_if_present<SplatElementsAttr>(adaptor.getX()))
    return splat.resizeSplat(type);
  return {};
}

static OnnxRegistration slice = OnnxRegistration("Slice", 1, importSlice)
                                    .mustKnow(1, "starts")
                                    .mustKnow(2, "ends")
                                    .mustKnow(3, "axes")
                                    .mustKnow(4, "steps");

} // namespace trainc::nn
