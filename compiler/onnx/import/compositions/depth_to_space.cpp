// SPDX-License-Identifier: Apache-2.0
//
// ONNX DepthToSpace and SpaceToDepth: channels become blocks of pixels, and back.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

constexpr int64_t kLargestBlock = 1 << 20; // far beyond any image, and its square is a number

// The size of a block of an image; fails with an error.
static FailureOr<int64_t> blockOf(OnnxNode &node, RankedTensorType type) {
  int64_t block = node.integer("blocksize", 0);
  if (type.getRank() != 4)
    return node.error("its operand has rank " + llvm::Twine(type.getRank()) + ", expected 4");
  if (block < 1 || block > kLargestBlock)
    return node.error("blocksize is " + llvm::Twine(block) + ", expected 1 to " +
                      llvm::Twine(kLargestBlock));
  return block;
}

// The way that channels and blocks interleave.
static FailureOr<bool> blocksFirst(OnnxNode &node) {
  std::string mode = node.string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return node.error("unknown mode '" + mode + "'", "DCR or CRD");
  return mode == "DCR";
}

static OnnxResults importDepthToSpace(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  FailureOr<int64_t> block = blockOf(node, tensorType(x));
  if (failed(block))
    return failure();
  int64_t b = *block;
  ArrayRef<int64_t> size = tensorType(x).getShape();
  if (size[1] % (b * b) != 0)
    return node.error(llvm::Twine(size[1]) + " channels are not a multiple of " +
                      llvm::Twine(b * b));
  int64_t channels = size[1] / (b * b);
  FailureOr<bool> first = blocksFirst(node);
  if (failed(first))
    return failure();
  Value parts = *first ? builder.reshape(x, {size[0], b, b, channels, size[2], size[3]})
                       : builder.reshape(x, {size[0], channels, b, b, size[2], size[3]});
  Value moved = *first ? builder.transpose(parts, {0, 3, 4, 1, 5, 2})
                       : builder.transpose(parts, {0, 1, 4, 2, 5, 3});
  return SmallVector<Value>{builder.reshape(moved, {size[0], channels, size[2] * b, size[3] * b})};
}

static OnnxResults importSpaceToDepth(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  FailureOr<int64_t> block = blockOf(node, tensorType(x));
  FailureOr<bool> first = blocksFirst(node);
  if (failed(block) || failed(first))
    return failure();
  int64_t b = *block;
  ArrayRef<int64_t> size = tensorType(x).getShape();
  if (size[2] % b != 0 || size[3] % b != 0)
    return node.error("an image of " + llvm::Twine(size[2]) + "x" + llvm::Twine(size[3]) +
                      " cannot be cut into blocks of " + llvm::Twine(b));
  Value parts = builder.reshape(x, {size[0], size[1], size[2] / b, b, size[3] / b, b});
  Value moved = *first ? builder.transpose(parts, {0, 3, 5, 1, 2, 4})
                       : builder.transpose(parts, {0, 1, 3, 5, 2, 4});
  return SmallVector<Value>{
      builder.reshape(moved, {size[0], b * b * size[1], size[2] / b, size[3] / b})};
}

static OnnxRegistration depthToSpace("DepthToSpace", 1, importDepthToSpace);
static OnnxRegistration spaceToDepth("SpaceToDepth", 1, importSpaceToDepth);

} // namespace trainc::nn
