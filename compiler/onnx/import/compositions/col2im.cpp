// SPDX-License-Identifier: Apache-2.0
//
// ONNX Col2Im: blocks of an image, one of a column each, added where they lie. A dimension after
// the other, so that there are as many additions as a block is long, high and wide together; blocks
// that tile a dimension are moved only.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/window.h"

using namespace mlir;

namespace trainc::nn {
namespace {

struct Fold {
  int64_t size; // of the image, without pads
  int64_t block, stride, dilation, before, after;

  int64_t padded() const { return size + before + after; }
  int64_t count() const {
    int64_t reach = reachOf(block, dilation);
    return padded() < reach ? 0 : (padded() - reach) / stride + 1;
  }
};

} // namespace

// Dimension `place` of x counts blocks, `block` their elements along it; the first becomes the
// image's, the second leaves.
static Value folded(Builder &builder, Value x, int64_t block, int64_t place, const Fold &fold) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  shape.erase(shape.begin() + block);
  SmallVector<int64_t> none(shape.size(), 0);
  int64_t kept = place - 1; // where it is then: elements of blocks stand in front
  Value sum;
  if (fold.stride == fold.block && fold.dilation == 1) {
    shape[kept] *= fold.block;
    sum = builder.reshape(builder.move(x, block, place), shape);
    SmallVector<int64_t> rest(none);
    rest[kept] = fold.padded() - shape[kept];
    sum = rest[kept] ? builder.create<PadOp>(sum, none, rest, none) : sum;
  } else {
    for (int64_t i = 0; i < fold.block; ++i) {
      Value part = builder.reshape(builder.slice(x, block, i, 1), shape);
      SmallVector<int64_t> low(none), high(none), between(none);
      low[kept] = i * fold.dilation;
      between[kept] = fold.stride - 1;
      high[kept] = fold.padded() - low[kept] - (fold.count() - 1) * fold.stride - 1;
      part = builder.create<PadOp>(part, low, high, between);
      sum = sum ? builder.add(sum, part) : part;
    }
  }
  return builder.slice(sum, kept, fold.before, fold.size);
}

static FailureOr<SmallVector<Fold>> foldsOf(OnnxNode &node) {
  auto image = node.integers(1), block = node.integers(2);
  if (!image || !block || image->empty() || image->size() != block->size())
    return node.error(
        "image_shape and block_shape are not one integer for each dimension of space");
  int64_t space = image->size();
  auto windows = readWindow(node, space);
  if (failed(windows))
    return failure();
  SmallVector<Fold> folds;
  for (int64_t d = 0; d < space; ++d) {
    if ((*image)[d] < 1 || (*block)[d] < 1 || (*image)[d] > kLargestTensor ||
        (*block)[d] > kLargestWindowNumber)
      return node.error("dimension " + llvm::Twine(d) + " of its image has size " +
                        llvm::Twine((*image)[d]) + ", that of its blocks " +
                        llvm::Twine((*block)[d]));
    folds.push_back({(*image)[d], (*block)[d], windows->strides[d], windows->dilations[d],
                     windows->pads[d], windows->pads[d + space]});
  }
  return folds;
}

// [N, channels x elements of a block, blocks] with the dimensions of both apart.
static FailureOr<SmallVector<int64_t>> shapeOfBlocks(OnnxNode &node, ArrayRef<Fold> folds) {
  auto type = tensorType(node.input(0));
  SmallVector<int64_t> block, count;
  for (const Fold &fold : folds) {
    block.push_back(fold.block);
    count.push_back(fold.count());
  }
  auto elements = elementCount(block), blocks = elementCount(count);
  if (!elements || type.getRank() != 3 || type.getDimSize(1) < 1 ||
      type.getDimSize(1) % *elements != 0)
    return node.error("its input is not [batch, channels times the elements of a block, blocks]");
  if (!blocks || type.getDimSize(2) != *blocks || *blocks == 0)
    return node.error("its input has " + llvm::Twine(type.getDimSize(2)) +
                      " blocks, and the image " +
                      (blocks ? llvm::Twine(*blocks) : llvm::Twine("more than 2^40")));
  SmallVector<int64_t> shape{type.getDimSize(0), type.getDimSize(1) / *elements};
  llvm::append_range(shape, block);
  llvm::append_range(shape, count);
  return shape;
}

static OnnxResults importCol2Im(OnnxNode &node) {
  Builder &builder = node.builder();
  FailureOr<SmallVector<Fold>> folds = foldsOf(node);
  if (failed(folds))
    return failure();
  FailureOr<SmallVector<int64_t>> shape = shapeOfBlocks(node, *folds);
  if (failed(shape))
    return failure();
  SmallVector<int64_t> image{(*shape)[0], (*shape)[1]};
  for (const Fold &fold : *folds)
    image.push_back(fold.padded());
  if (failed(countElements(node, image)))
    return failure();
  Value x = builder.reshape(node.input(0), *shape);
  int64_t space = folds->size();
  for (auto [d, fold] : llvm::enumerate(*folds))
    x = folded(builder, x, 2, 2 + space, fold);
  return SmallVector<Value>{x};
}

static OnnxRegistration col2Im = OnnxRegistration("Col2Im", 18, importCol2Im, settingsFrom<1>)
                                     .mustKnow(1, "image_shape")
                                     .mustKnow(2, "block_shape");

} // namespace trainc::nn
