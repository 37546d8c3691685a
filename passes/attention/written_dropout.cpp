// SPDX-License-Identifier: Apache-2.0
//
// Dropout as the reader of models writes it (written_dropout.h).
#include "passes/attention/written_dropout.h"
#include "dialects/nn/dropout.h"
#include "dialects/nn/raised_pattern.h"

using namespace mlir;

namespace trainc {
namespace {

/// The smallest number that is kept.
std::optional<int64_t> smallestKept(nn::GreaterOrEqualOp keep) {
  auto constant = keep.getB().getDefiningOp<nn::ConstantOp>();
  auto numbers = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : nullptr;
  if (!numbers || !numbers.isSplat())
    return std::nullopt;
  return numbers.getSplatValue<APInt>().getSExtValue();
}

/// Whether it is the factor of what is kept, as its element type has it.
bool isFactor(Value value, int64_t dropped) {
  std::optional<double> number = nn::splatOfFloats(value);
  auto type = cast<FloatType>(nn::tensorType(value).getElementType());
  APFloat factor(nn::dropoutFactor(dropped));
  bool loses = false;
  factor.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
  return number == factor.convertToDouble();
}

/// Reads `mask`, which the weights are multiplied by.
bool readMask(Value mask, WrittenDropout &dropout) {
  auto select = mask.getDefiningOp<nn::SelectOp>();
  auto keep =
      select ? select.getCondition().getDefiningOp<nn::GreaterOrEqualOp>() : nn::GreaterOrEqualOp();
  auto random = keep ? keep.getA().getDefiningOp<nn::RandomBitsOp>() : nn::RandomBitsOp();
  if (!random || random.getKeys() || random.getBits() != nn::kDropoutBits)
    return false;
  std::optional<int64_t> dropped = smallestKept(keep);
  if (!dropped || *dropped < 1 || *dropped > nn::kAllDropped)
    return false;
  dropout.stream = static_cast<int64_t>(random.getStream());
  dropout.dropped = *dropped;
  return isFactor(select.getA(), *dropped) && nn::splatOfFloats(select.getB()) == 0.0;
}

} // namespace

std::optional<WrittenDropout> writtenDropout(Value value) {
  WrittenDropout dropout = {};
  for (Operation *user : value.getUsers()) {
    if (auto form = dyn_cast<nn::TrainingFormOp>(user); form && !dropout.result)
      dropout.result = form;
    else if (auto product = dyn_cast<nn::MulOp>(user); product && !dropout.product)
      dropout.product = product;
    else
      return std::nullopt;
  }
  if (!dropout.result || !dropout.product || !dropout.product->hasOneUse() ||
      dropout.result.getTraining() != dropout.product.getResult() ||
      dropout.result.getInference() != value)
    return std::nullopt;
  bool isFirst = dropout.product.getA() == value;
  if (!readMask(isFirst ? dropout.product.getB() : dropout.product.getA(), dropout))
    return std::nullopt;
  return dropout;
}

} // namespace trainc
