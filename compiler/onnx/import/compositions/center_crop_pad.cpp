// SPDX-License-Identifier: Apache-2.0
//
// ONNX CenterCropPad: the middle of each axis, or zeros around it. An odd difference takes the
// smaller half in front.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

// The sizes of the result: those asked for along the axes that are named, or along all.
static FailureOr<SmallVector<int64_t>> askedSizes(OnnxNode &node, ArrayRef<int64_t> shape) {
  int64_t rank = shape.size();
  SmallVector<int64_t> sizes(shape), axes = llvm::to_vector(llvm::seq(rank));
  if (auto named = node.integers("axes"))
    axes = *named;
  auto asked = node.integers(1);
  if (!asked || asked->size() != axes.size())
    return node.error("its shape is not one integer for each of " + llvm::Twine(axes.size()) +
                      " axes");
  SmallVector<bool> seen(rank, false);
  for (auto [axis, size] : llvm::zip(axes, *asked)) {
    FailureOr<int64_t> dimension = dimensionOf(node, axis, rank);
    if (failed(dimension))
      return failure();
    if (seen[*dimension])
      return node.error("axis " + llvm::Twine(axis) + " is named twice");
    if (size < 0)
      return node.error("its shape has size " + llvm::Twine(size) + " along dimension " +
                        llvm::Twine(*dimension));
    seen[*dimension] = true;
    sizes[*dimension] = size;
  }
  if (failed(countElements(node, sizes)))
    return failure();
  return sizes;
}

static OnnxResults importCenterCropPad(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  auto sizes = askedSizes(node, tensorType(x).getShape());
  if (failed(sizes))
    return failure();
  SmallVector<int64_t> none(sizes->size(), 0), low(none), high(none);
  for (auto [dimension, size] : llvm::enumerate(*sizes)) {
    int64_t extra = size - tensorType(x).getDimSize(dimension);
    if (extra < 0)
      x = builder.slice(x, dimension, -extra / 2, size);
    low[dimension] = std::max<int64_t>(extra, 0) / 2;
    high[dimension] = std::max<int64_t>(extra, 0) - low[dimension];
  }
  if (ArrayRef(*sizes) != tensorType(x).getShape())
    x = builder.create<PadOp>(x, low, high, none);
  return SmallVector<Value>{x};
}

static OnnxRegistration centerCropPad =
    OnnxRegistration("CenterCropPad", 18, importCenterCropPad, settingsFrom<1>)
        .mustKnow(1, "shape");

} // namespace trainc::nn
