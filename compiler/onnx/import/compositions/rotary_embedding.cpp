// SPDX-License-Identifier: Apache-2.0
//
// ONNX RotaryEmbedding: pairs of numbers of each head, turned by the angle of their position (Su et
// al., "RoFormer", 2021). The cosines and sines are a table by position, or given for each token.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {
namespace {

class Rotation {
public:
  explicit Rotation(OnnxNode &node)
      : node(node), builder(node.builder()), x(node.input(0)), own(tensorType(x)),
        isInterleaved(node.integer("interleaved", 0) != 0) {}

  LogicalResult check() {
    int64_t heads = node.integer("num_heads", 0), rank = own.getRank();
    if (!isa<FloatType>(own.getElementType()) || (rank != 3 && rank != 4))
      return node.error("expects floats [batch, heads, tokens, size] or [batch, tokens, heads x "
                        "size]");
    shape.assign(own.getShape().begin(), own.getShape().end());
    if (rank == 3) {
      if (heads < 1 || shape[2] % heads != 0)
        return node.error("num_heads is " + llvm::Twine(heads) + ", which does not divide " +
                          llvm::Twine(shape[2]));
      shape = {shape[0], shape[1], heads, shape[2] / heads};
    }
    tokens = rank == 3 ? 1 : 2;
    rotated = node.integer("rotary_embedding_dim", 0);
    rotated = rotated == 0 ? shape[3] : rotated;
    if (rotated < 2 || rotated > shape[3] || rotated % 2 != 0)
      return node.error("rotates " + llvm::Twine(rotated) + " numbers of a head of " +
                        llvm::Twine(shape[3]) + ", expected an even number of them");
    return success();
  }

  /// Cosines or sines: [batch, tokens, pairs] as a tensor like a half of what is turned.
  FailureOr<Value> angles(unsigned input) {
    Value cache = node.input(input);
    RankedTensorType type = tensorType(cache);
    SmallVector<int64_t> each{shape[0], shape[tokens], rotated / 2};
    if (type.getElementType() != own.getElementType())
      return node.error("operands are not numbers of one type", "insert a Cast before the node");
    if (node.hasInput(3)) {
      if (type.getRank() != 2 || type.getDimSize(1) != rotated / 2)
        return node.error("its table of angles is not [positions, " + llvm::Twine(rotated / 2) +
                          "]");
      if (tensorType(node.input(3)).getShape() != ArrayRef(each).drop_back())
        return node.error("its positions are not [batch, tokens]");
      if (auto known = node.integers(3))
        for (int64_t position : *known)
          if (position < 0 || position >= type.getDimSize(0))
            return node.error("position " + llvm::Twine(position) + " is out of range for size " +
                              llvm::Twine(type.getDimSize(0)));
      cache = builder.create<GatherOp>(cache, node.input(3));
    } else if (type.getShape() != ArrayRef(each)) {
      return node.error("its angles are not [batch, tokens, " + llvm::Twine(rotated / 2) + "]");
    }
    return builder.broadcast(cache, {0, tokens, 3}, half());
  }

  Value build(Value cosine, Value sine) {
    Value heads = builder.reshape(x, shape);
    int64_t pairs = rotated / 2, stride = isInterleaved ? 2 : 1;
    Value a = builder.slice(heads, 3, 0, pairs, stride);
    Value b = builder.slice(heads, 3, isInterleaved ? 1 : pairs, pairs, stride);
    Value first = builder.sub(builder.mul(cosine, a), builder.mul(sine, b));
    Value second = builder.add(builder.mul(sine, a), builder.mul(cosine, b));
    Value turned = builder.named("rotated", join(first, second));
    if (rotated < shape[3])
      turned = builder.create<ConcatOp>(
          ValueRange{turned, builder.slice(heads, 3, rotated, shape[3] - rotated)}, 3);
    return builder.reshape(turned, own.getShape());
  }

private:
  SmallVector<int64_t> half() const { return {shape[0], shape[1], shape[2], rotated / 2}; }

  Value join(Value first, Value second) {
    if (!isInterleaved)
      return builder.create<ConcatOp>(ValueRange{first, second}, 3);
    SmallVector<int64_t> pairs = half(), whole = half();
    pairs.push_back(1);
    whole.back() = rotated;
    Value both = builder.create<ConcatOp>(
        ValueRange{builder.reshape(first, pairs), builder.reshape(second, pairs)}, 4);
    return builder.reshape(both, whole);
  }

  OnnxNode &node;
  Builder &builder;
  Value x;
  RankedTensorType own;
  bool isInterleaved;
  SmallVector<int64_t> shape; // of the heads, four dimensions
  int64_t tokens = 2;         // which of them
  int64_t rotated = 0;        // numbers of a head
};

} // namespace

static OnnxResults importRotaryEmbedding(OnnxNode &node) {
  Rotation rotation(node);
  if (failed(rotation.check()))
    return failure();
  FailureOr<Value> cosine = rotation.angles(1), sine = rotation.angles(2);
  if (failed(cosine) || failed(sine))
    return failure();
  return SmallVector<Value>{rotation.build(*cosine, *sine)};
}

// Angles follow from positions: no model learns them.
static OnnxRegistration rotaryEmbedding("RotaryEmbedding", 23, importRotaryEmbedding,
                                        settingsFrom<1>);

} // namespace trainc::nn
