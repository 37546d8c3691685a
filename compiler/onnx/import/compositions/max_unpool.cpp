// SPDX-License-Identifier: Apache-2.0
//
// ONNX MaxUnpool: what a MaxPool took goes back to where its indices say, between zeros. Of several
// elements of one place the last stays.
//
// Indices count the elements of the smallest tensor that has such a pool, and an output_shape pads
// its result: so says ONNX. What MaxPool itself makes of a larger tensor counts the elements of
// that one, which then is the result.
#include "compiler/onnx/import/compositions/indexed_rows.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/pool.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal moreUnpooled({"MaxUnpool"}, "more than 3 dimensions of space");

/// The pool that made the indices in this graph; null where none did.
static MaxPoolOp poolOf(Value indices) {
  auto pool = indices.getDefiningOp<MaxPoolOp>();
  bool isOfPositions = pool && pool.getX() != pool.getValues();
  return isOfPositions ? pool : MaxPoolOp();
}

static bool isWithoutOverlap(MaxPoolOp pool) {
  for (auto [size, dilation, stride] :
       llvm::zip(pool.getKernel(), pool.getDilations(), pool.getStrides()))
    if (reachOf(size, dilation) > stride)
      return false;
  return true;
}

/// The shape of the smallest tensor with such a pool.
static FailureOr<SmallVector<int64_t>> pooledShape(OnnxNode &node) {
  RankedTensorType type = tensorType(node.input(0));
  int64_t space = type.getRank() - 2;
  if (space < 1 || space > 3)
    return node.error(moreUnpooled.told("input 'X' has " + llvm::Twine(space) +
                                        " dimensions of space, expected 1 to 3"));
  auto kernel = node.integers("kernel_shape");
  if (!kernel || static_cast<int64_t>(kernel->size()) != space ||
      llvm::any_of(*kernel, [](int64_t size) { return size < 1 || size > kLargestWindowNumber; }))
    return node.error("attribute 'kernel_shape' is not one positive number for each of " +
                      llvm::Twine(space) + " dimensions of space");
  auto windows = readWindow(node, space);
  if (failed(windows))
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t d = 0; d < space; ++d) {
    int64_t &size = shape[d + 2];
    size = (size - 1) * windows->strides[d] + (*kernel)[d] - windows->pads[d] -
           windows->pads[d + space];
    if (size < 1)
      return node.error("its pads leave " + llvm::Twine(size) + " elements of dimension " +
                        llvm::Twine(d + 2));
  }
  return shape;
}

/// What `output_shape` asks for; else `otherwise`.
static FailureOr<SmallVector<int64_t>> resultShape(OnnxNode &node, ArrayRef<int64_t> otherwise) {
  if (!node.hasInput(2))
    return SmallVector<int64_t>(otherwise);
  auto shape = node.integers(2);
  if (shape->size() != otherwise.size() ||
      ArrayRef(*shape).take_front(2) != otherwise.take_front(2))
    return node.error("output_shape does not fit an operand of rank " +
                      llvm::Twine(otherwise.size()) + " with its batch and channels");
  return *shape;
}

static OnnxResults importMaxUnpool(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  RankedTensorType type = tensorType(x);
  FailureOr<SmallVector<int64_t>> counted = pooledShape(node);
  if (failed(counted))
    return failure();
  auto shape = resultShape(node, *counted);
  if (failed(shape))
    return failure();
  if (node.constant(1) ? node.constant(1).shape() != type.getShape()
                       : tensorType(node.input(1)).getShape() != type.getShape())
    return node.error("its indices do not have the shape of its operand");
  MaxPoolOp pool = node.constant(1) ? MaxPoolOp() : poolOf(node.input(1));
  if (pool && pool.getX().getType().getShape() == ArrayRef(*shape))
    counted = *shape;
  for (auto [d, size] : llvm::enumerate(*shape))
    if (size < (*counted)[d])
      return node.error("output_shape has size " + llvm::Twine(size) + " along dimension " +
                        llvm::Twine(d) + ", and its indices count " + llvm::Twine((*counted)[d]));
  FailureOr<int64_t> elements = countElements(node, *counted);
  if (failed(elements) || failed(countElements(node, *shape)))
    return failure();
  FailureOr<IndexedRows> places = elementsByNumber(node, *elements);
  if (failed(places))
    return failure();
  Value updates = builder.reshape(x, type.getNumElements());
  Value zeros = builder.constant(0, type.clone({*elements}));
  // Nothing is at one place twice where windows lie apart; a sum is all that it takes then.
  bool isSum = pool && isWithoutOverlap(pool) && isa<FloatType>(type.getElementType());
  OnnxResults results =
      scatterRows(node, zeros, *places, updates, isSum ? "add" : "none", *counted);
  if (failed(results) || *shape == *counted)
    return results;
  SmallVector<int64_t> none(shape->size(), 0), behind;
  for (auto [size, inner] : llvm::zip(*shape, *counted))
    behind.push_back(size - inner);
  return SmallVector<Value>{builder.create<PadOp>(results->front(), none, behind, none)};
}

static OnnxRegistration maxUnpool =
    OnnxRegistration("MaxUnpool", 9, importMaxUnpool).mustKnow(2, "output_shape");

} // namespace trainc::nn
