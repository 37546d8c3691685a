// SPDX-License-Identifier: Apache-2.0
//
// Problem: models are exported with a batch of one, and their reshapes say so. The same graph on
// more samples is the model that was meant only if it keeps them apart.
//
// Method: samples are followed from the inputs on. In row-major order they are a stride apart,
// which a reshape does not change; operations that move, reduce or contract dimensions must leave
// theirs alone. A reshape to a fixed shape gets its samples where they stand in the file. Composite
// operations are followed through what they decompose to. Whatever is not known here is refused.
//
// Known weakness: indices into a table that the samples share, made flat, are refused though the
// rows that they choose may be their own.
#include "compiler/onnx/batch_axis.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/nn.h"
#include "dialects/nn/reduction.h"
#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using trainc::nn::tensorType;

namespace trainc::reader {

static int64_t elementsBehind(ArrayRef<int64_t> shape, int64_t dimension) {
  return computeProduct(shape.drop_front(dimension + 1));
}

void BatchAxis::add(Value input) { place(input, 0, 1); }

void BatchAxis::place(Value result, int64_t dimension, int64_t elements) {
  strides[result] = elements * elementsBehind(tensorType(result).getShape(), dimension);
}

std::optional<BatchAxis::Place> BatchAxis::find(Value value) const {
  auto stride = strides.find(value);
  if (stride == strides.end())
    return std::nullopt;
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    int64_t behind = elementsBehind(shape, d);
    if (stride->second % behind == 0 && (behind * shape[d]) % (stride->second * asked) == 0)
      return Place{d, stride->second / behind};
  }
  return std::nullopt; // samples are spread over dimensions
}

bool BatchAxis::follow(Operation *op) {
  SmallVector<std::optional<Place>> places;
  std::optional<int64_t> stride;
  bool same = true;
  for (Value operand : op->getOperands()) {
    places.push_back(find(operand));
    auto found = strides.find(operand);
    if (found == strides.end())
      continue;
    same = same && stride.value_or(found->second) == found->second;
    stride = found->second;
  }
  if (!stride)
    return true;
  bool isElementwise = isa<nn::PointwiseOpInterface>(op) ||
                       op->hasTrait<OpTrait::SameOperandsAndResultShape>() ||
                       op->hasTrait<OpTrait::SameOperandsAndResultType>();
  if (isElementwise || isa<nn::ReshapeOp>(op)) {
    for (Value result : op->getResults())
      strides[result] = *stride;
    return same;
  }
  for (auto [operand, place] : llvm::zip(op->getOperands(), places))
    if (strides.contains(operand) && !place)
      return false;
  return follow(op, places);
}

// Of an operation with an operand that has samples.
bool BatchAxis::follow(Operation *op, ArrayRef<std::optional<Place>> places) {
  auto put = [&](int64_t dimension, const Place &from) {
    for (Value result : op->getResults())
      place(result, dimension, from.elements);
    return true;
  };
  // Along whatever dimensions but those, with operands of one rank.
  auto aside = [&](auto touches) {
    std::optional<Place> common;
    for (const std::optional<Place> &place : places) {
      if (!place)
        continue;
      if (touches(place->dimension) || (common && !(*common == *place)))
        return false;
      common = place;
    }
    return put(common->dimension, *common);
  };
  if (nn::isReduction(op)) {
    auto reduced = op->getAttrOfType<DenseI64ArrayAttr>("dimensions").asArrayRef();
    if (llvm::is_contained(reduced, places[0]->dimension))
      return false;
    auto before = [&](int64_t d) { return d < places[0]->dimension; };
    return put(places[0]->dimension - llvm::count_if(reduced, before), *places[0]);
  }
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::TransposeOp transpose) {
        auto from = llvm::find(transpose.getPermutation(), places[0]->dimension);
        return put(from - transpose.getPermutation().begin(), *places[0]);
      })
      .Case([&](nn::BroadcastOp broadcast) {
        return put(broadcast.getDimensions()[places[0]->dimension], *places[0]);
      })
      .Case([&](nn::SliceOp slice) {
        return aside([&](int64_t d) {
          return slice.getStrides()[d] != 1 ||
                 slice.getSizes()[d] != tensorType(slice.getX()).getDimSize(d);
        });
      })
      .Case([&](nn::ReverseOp reverse) {
        return aside([&](int64_t d) { return llvm::is_contained(reverse.getDimensions(), d); });
      })
      .Case([&](nn::PadOp pad) {
        return aside(
            [&](int64_t d) { return pad.getLow()[d] || pad.getHigh()[d] || pad.getInterior()[d]; });
      })
      .Case([&](nn::ConcatOp concat) {
        return aside([&](int64_t d) { return d == static_cast<int64_t>(concat.getDimension()); });
      })
      .Case([&](nn::MatmulOp product) {
        int64_t rank = product.getResult().getType().getRank();
        int64_t rowOfA = rank - (product.getTransposeA() ? 1 : 2);
        int64_t columnOfB = rank - (product.getTransposeB() ? 2 : 1);
        const auto &a = places[0], &b = places[1];
        if (a && a->dimension == rowOfA && !b)
          return put(rank - 2, *a);
        if (b && b->dimension == columnOfB && !a)
          return put(rank - 1, *b);
        return aside([&](int64_t d) { return d >= rank - 2; });
      })
      .Case([&](nn::GatherOp gather) {
        if (places[0] && (places[1] || places[0]->dimension == 0))
          return false;
        int64_t indexed = tensorType(gather.getIndices()).getRank();
        return places[0] ? put(indexed + places[0]->dimension - 1, *places[0])
                         : put(places[1]->dimension, *places[1]);
      })
      .Case<nn::ConvolutionOp, nn::ConvolutionInputGradientOp>(
          [&](auto) { return !places[1] && places[0]->dimension == 0 && put(0, *places[0]); })
      .Case<nn::MaxPoolOp, nn::SumPoolOp, nn::SumPoolGradientOp>(
          [&](auto) { return aside([&](int64_t d) { return d > 1; }); })
      .Case([&](nn::BatchNormOp) { // statistics of the batch are its meaning
        return aside([&](int64_t d) { return d == 1; });
      })
      .Default([&](Operation *) { return followParts(op); });
}

bool BatchAxis::followParts(Operation *op) {
  auto whole = dyn_cast<nn::DecomposableOpInterface>(op);
  if (!whole)
    return false;
  Block block;
  OpBuilder at(op->getContext());
  at.setInsertionPointToEnd(&block);
  nn::Builder builder(at, op->getLoc());
  SmallVector<Value> results = whole.decompose(builder);
  bool good = llvm::all_of(block, [&](Operation &part) { return follow(&part); });
  for (auto [result, made] : llvm::zip(op->getResults(), results))
    if (auto stride = strides.find(made); stride != strides.end())
      strides[result] = int64_t(stride->second);
  for (Operation &part : block)
    for (Value made : part.getResults())
      strides.erase(made);
  return good;
}

SmallVector<int64_t> BatchAxis::expanded(Value x, ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> result(shape);
  std::optional<Place> from = find(x);
  int64_t added = static_cast<int64_t>(shape.size()) - tensorType(x).getRank();
  if (from && added >= 0 && result[from->dimension + added] == from->elements * inFile)
    result[from->dimension + added] = from->elements * asked;
  return result;
}

SmallVector<int64_t> BatchAxis::reshaped(Value x, ArrayRef<int64_t> shape, bool zeroCopies) const {
  SmallVector<int64_t> result(shape);
  std::optional<Place> from = find(x);
  if (!from)
    return result;
  SmallVector<int64_t> before(tensorType(x).getShape());
  before[from->dimension] = before[from->dimension] / asked * inFile;
  int64_t known = 1, open = -1;
  for (int64_t d = 0; d < static_cast<int64_t>(result.size()); ++d) {
    if (result[d] == 0 && zeroCopies && d < static_cast<int64_t>(before.size()))
      result[d] = before[d];
    if (result[d] == -1)
      open = d;
    else
      known *= result[d];
  }
  if (known <= 0)
    return SmallVector<int64_t>(shape); // whoever reads it says what is wrong
  if (open >= 0)
    result[open] = computeProduct(before) / known;
  if (computeProduct(result) != computeProduct(before))
    return SmallVector<int64_t>(shape);
  int64_t stride = strides.lookup(x), chosen = -1;
  for (int64_t d = 0; d < static_cast<int64_t>(result.size()); ++d) {
    int64_t behind = elementsBehind(result, d);
    if (stride % behind != 0 || (behind * result[d]) % (stride * inFile) != 0)
      continue;
    bool isAlone = behind == stride && result[d] == inFile;
    if (isAlone || chosen < 0)
      chosen = d;
    if (isAlone)
      break;
  }
  if (chosen < 0)
    return SmallVector<int64_t>(shape);
  result[chosen] = result[chosen] / inFile * asked;
  return result;
}

std::optional<int64_t> BatchAxis::repeated(Value value, Value other) const {
  std::optional<Place> place = find(other);
  auto type = tensorType(value);
  if (!place || strides.contains(value) || type.getRank() != tensorType(other).getRank() ||
      type.getDimSize(place->dimension) != inFile || inFile != 1)
    return std::nullopt;
  return place->dimension;
}

} // namespace trainc::reader
