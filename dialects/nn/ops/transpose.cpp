// SPDX-License-Identifier: Apache-2.0
//
// nn.transpose; ONNX Transpose.
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

static bool isPermutation(ArrayRef<int64_t> permutation, int64_t rank) {
  llvm::SmallBitVector seen(rank);
  for (int64_t dimension : permutation)
    if (dimension >= 0 && dimension < rank)
      seen.set(dimension);
  return static_cast<int64_t>(permutation.size()) == rank && seen.all();
}

static OnnxResults importTranspose(OnnxNode &node) {
  Value x = node.input(0);
  int64_t rank = tensorType(x).getRank();
  auto permutation = node.integers("perm");
  if (!permutation) {
    permutation = llvm::to_vector(llvm::seq(rank));
    std::reverse(permutation->begin(), permutation->end());
  }
  for (int64_t &dimension : *permutation)
    dimension = dimension < 0 ? dimension + rank : dimension;
  if (!isPermutation(*permutation, rank))
    return node.error("perm is not a permutation of " + llvm::Twine(rank) + " dimensions");
  return SmallVector<Value>{node.builder().transpose(x, *permutation)};
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  if (!isPermutation(adaptor.getPermutation(), type.getRank())) // transpose-c1
    return emitOptionalError(location, "expects a permutation of ", type.getRank(), " dimensions");
  SmallVector<int64_t> shape;
  for (int64_t dimension : adaptor.getPermutation())
    shape.push_back(type.getDimSize(dimension));
  types.push_back(type.clone(shape));
  return success();
}

LogicalResult TransposeOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                         const llvm::SmallBitVector &,
                                         SmallVectorImpl<Value> &operandGradients) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = to;
  operandGradients.assign({builder.transpose(resultGradients[0], inverse)});
  return success();
}

double TransposeOp::flops() { return 0; }

FailureOr<Tensor> TransposeOp::interpret(ArrayRef<Tensor> operands) {
  SmallVector<int64_t> own = computeStrides(getX().getType().getShape());
  auto strides =
      llvm::map_to_vector(getPermutation(), [&](int64_t dimension) { return own[dimension]; });
  return operands[0].moved(getResult().getType().getShape(), 0, strides);
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getX();
  if (auto splat = llvm::dyn_cast_if_present<SplatElementsAttr>(adaptor.getX()))
    return splat.resizeSplat(getResult().getType());
  auto inner = getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return {};
  SmallVector<int64_t> permutation;
  for (int64_t dimension : getPermutation())
    permutation.push_back(inner.getPermutation()[dimension]);
  setPermutation(permutation);
  getXMutable().assign(inner.getX());
  return getResult();
}

static OnnxRegistration transpose("Transpose", 1, importTranspose);

} // namespace trainc::nn
