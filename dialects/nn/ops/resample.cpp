// SPDX-License-Identifier: Apache-2.0
//
// nn.resample. A few taps are gathered, so that interpolation is part of a kernel; many, as in the
// gradient of a large magnification, are a matrix product whose weights are mostly zero.
#include "dialects/nn/builder.h"
#include "dialects/nn/tensor.h"

using namespace mlir;

namespace trainc::nn {

static constexpr int64_t kMostGathered = 8; // taps

LogicalResult ResampleOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                           Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  auto dimension = static_cast<int64_t>(adaptor.getDimension());
  if (dimension < 0 || dimension >= type.getRank()) // resample-c1
    return emitOptionalError(location, "dimension ", dimension, " is out of range for rank ",
                             type.getRank());
  int64_t count = adaptor.getIndices().size(), taps = adaptor.getTaps();
  if (taps < 1 || count % taps != 0 ||
      count != static_cast<int64_t>(adaptor.getWeights().size())) // resample-c2
    return emitOptionalError(location, "has ", count, " indices and ", adaptor.getWeights().size(),
                             " weights for ", taps, " taps of each element");
  for (int64_t index : adaptor.getIndices())
    if (index < 0 || index >= type.getDimSize(dimension)) // resample-c3
      return emitOptionalError(location, "index ", index, " is out of range for size ",
                               type.getDimSize(dimension));
  SmallVector<int64_t> shape(type.getShape());
  shape[dimension] = count / taps;
  types.push_back(type.clone(shape));
  return success();
}

LogicalResult ResampleOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                        const llvm::SmallBitVector &,
                                        SmallVectorImpl<Value> &operandGradients) {
  // What each element of x is weighed into, in the result's order.
  std::vector<std::vector<std::pair<int64_t, double>>> uses(
      getX().getType().getDimSize(getDimension()));
  int64_t taps = getTaps(), most = 1;
  for (auto [i, index, weight] : llvm::enumerate(getIndices(), getWeights()))
    if (weight != 0)
      uses[index].emplace_back(static_cast<int64_t>(i) / taps, weight);
  for (const auto &list : uses)
    most = std::max<int64_t>(most, list.size());
  SmallVector<int64_t> indices;
  SmallVector<double> weights;
  for (auto &list : uses) {
    list.resize(most, {list.empty() ? 0 : list.back().first, 0.0});
    for (auto [index, weight] : list) {
      indices.push_back(index);
      weights.push_back(weight);
    }
  }
  operandGradients.assign(
      {builder.create<ResampleOp>(resultGradients[0], getDimension(), most, indices, weights)});
  return success();
}

double ResampleOp::flops() { return 2.0 * getTaps() * getResult().getType().getNumElements(); }

namespace {

// Along the first dimension.
struct Resampling {
  Builder &builder;
  Value x;
  int64_t taps;
  ArrayRef<int64_t> indices;
  ArrayRef<double> weights;

  int64_t size() const { return indices.size() / taps; }

  Value byGathering() const {
    auto type = tensorType(x);
    auto i64 = builder.op().getI64Type();
    Value sum;
    for (int64_t tap = 0; tap < taps; ++tap) {
      SmallVector<int64_t> rows;
      SmallVector<double> factors;
      for (int64_t i = 0; i < size(); ++i) {
        rows.push_back(indices[i * taps + tap]);
        factors.push_back(weights[i * taps + tap]);
      }
      auto known = RankedTensorType::get({size()}, i64);
      Value row = builder.constant(Tensor::ofIntegers(known, rows).attribute());
      Value part = builder.create<GatherOp>(x, row);
      if (llvm::any_of(factors, [](double factor) { return factor != 1; })) {
        auto weight =
            builder.constant(Tensor::ofReals(type.clone(ArrayRef(size())), factors).attribute());
        part = builder.mul(part, builder.broadcast(weight, {0}, tensorType(part).getShape()));
      }
      sum = sum ? builder.add(sum, part) : part;
    }
    return sum;
  }

  Value byProduct() const {
    auto type = tensorType(x);
    int64_t operands = type.getDimSize(0);
    int64_t inner = operands == 0 ? 0 : type.getNumElements() / operands;
    std::vector<double> matrix(size() * operands, 0.0);
    for (auto [i, index, weight] : llvm::enumerate(indices, weights))
      matrix[static_cast<int64_t>(i) / taps * operands + index] += weight;
    int64_t shape[] = {size(), operands};
    Value factor = builder.constant(Tensor::ofReals(type.clone(shape), matrix).attribute());
    Value product = builder.matmul(factor, builder.reshape(x, {operands, inner}));
    SmallVector<int64_t> sizes(type.getShape());
    sizes[0] = size();
    return builder.reshape(product, sizes);
  }
};

} // namespace

SmallVector<Value> ResampleOp::decompose(Builder &builder) {
  auto dimension = static_cast<int64_t>(getDimension());
  Resampling along{builder, builder.exchange(getX(), 0, dimension), static_cast<int64_t>(getTaps()),
                   getIndices(), getWeights()};
  Value result = along.taps <= kMostGathered ? along.byGathering() : along.byProduct();
  return {builder.exchange(result, 0, dimension)};
}

} // namespace trainc::nn
