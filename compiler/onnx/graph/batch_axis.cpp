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
#include "compiler/onnx/graph/batch_axis.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/nn.h"
#include "dialects/nn/reduction.h"
#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cstring>

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

std::optional<BatchAxis::Place> BatchAxis::locate(ArrayRef<int64_t> shape, int64_t stride) const {
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    int64_t behind = elementsBehind(shape, d);
    if (behind && stride % behind == 0 && (behind * shape[d]) % (stride * asked) == 0)
      return Place{d, stride / behind};
  }
  return std::nullopt; // samples are spread over dimensions
}

std::optional<BatchAxis::Place> BatchAxis::find(Value value) const {
  auto stride = strides.find(value);
  return stride == strides.end() ? std::nullopt
                                 : locate(tensorType(value).getShape(), stride->second);
}

bool BatchAxis::isBatch(Value value) const {
  return !hasSamples(value) || asked == 1 || find(value) == Place{0, 1};
}

static bool isElementwise(Operation *op) {
  return isa<nn::PointwiseOpInterface>(op) || op->hasTrait<OpTrait::SameOperandsAndResultShape>() ||
         op->hasTrait<OpTrait::SameOperandsAndResultType>();
}

static bool repeats(const nn::Tensor &values, int64_t stride, int64_t samples) {
  for (int64_t i = 0; i < values.count(); ++i) {
    int64_t first = i / (stride * samples) * (stride * samples) + i % stride;
    if (std::memcmp(values.at(i), values.at(first), values.width()) != 0)
      return false;
  }
  return true;
}

bool BatchAxis::isSameForAll(Value value, const Place &place) const {
  return isSameForAll(value, place.elements *
                                 elementsBehind(tensorType(value).getShape(), place.dimension));
}

// Whether what has no samples itself, but lies beside them, has the same for each.
bool BatchAxis::isSameForAll(Value value, int64_t stride) const {
  Operation *op = value.getDefiningOp();
  auto place = locate(tensorType(value).getShape(), stride);
  if (!op || !place) // an argument: a parameter, or an input that is not a sample
    return false;
  auto each = [&](const Place &of) {
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isSameForAll(operand, of); });
  };
  if (isElementwise(op) || isa<nn::ConcatOp, nn::PadOp, nn::SliceOp, nn::ReverseOp>(op)) {
    auto sizeOf = [&](Value one) { return tensorType(one).getDimSize(place->dimension); };
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return sizeOf(operand) == sizeOf(value); }) &&
           each(*place);
  }
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::ConstantOp constant) {
        return repeats(nn::Tensor::of(constant.getValue()), stride, asked);
      })
      .Case([&](nn::RandomBitsOp) { return true; }) // numbers of its own for each
      .Case([&](nn::IotaOp iota) {
        return static_cast<int64_t>(iota.getDimension()) != place->dimension;
      })
      .Case([&](nn::ReshapeOp reshape) { return isSameForAll(reshape.getX(), stride); })
      .Case([&](nn::TransposeOp transpose) {
        return each({transpose.getPermutation()[place->dimension], place->elements});
      })
      .Case([&](nn::BroadcastOp broadcast) {
        auto from = llvm::find(broadcast.getDimensions(), place->dimension);
        int64_t dimension = from - broadcast.getDimensions().begin();
        return from == broadcast.getDimensions().end() ||
               tensorType(broadcast.getX()).getDimSize(dimension) == 1 ||
               each({dimension, place->elements});
      })
      .Default(false);
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
  auto isEmpty = [](Value result) { return tensorType(result).getNumElements() == 0; };
  if (!stride || llvm::any_of(op->getResults(), isEmpty)) // which is refused as such
    return true;
  if (isElementwise(op) || isa<nn::ReshapeOp>(op)) {
    for (Value result : op->getResults())
      strides[result] = *stride;
    return same && llvm::all_of(op->getOperands(), [&](Value operand) {
             return hasSamples(operand) || isSameForAll(operand, *stride);
           });
  }
  for (auto [operand, place] : llvm::zip(op->getOperands(), places))
    if (strides.contains(operand) && !place)
      return false;
  return follow(op, places);
}

/// Whether a pool tells where elements are among all of x, those of other samples included.
static bool isOfPositions(nn::MaxPoolOp pool) {
  return pool && pool.getX() != pool.getValues() &&
         isa<IntegerType>(tensorType(pool.getValues()).getElementType());
}

/// What a max pool took elements from, of which `indices` is a flat list: those of a sample stay
/// within it. Null where they come from elsewhere.
static Value pooledBy(Value indices) {
  auto checked = indices.getDefiningOp<nn::GatherOp>(); // from a list of all numbers that there are
  if (!checked || !checked.getTable().getDefiningOp<nn::IotaOp>())
    return nullptr;
  Value numbers = checked.getIndices();
  while (auto reshape = numbers.getDefiningOp<nn::ReshapeOp>())
    numbers = reshape.getX();
  auto pool = numbers.getDefiningOp<nn::MaxPoolOp>();
  return isOfPositions(pool) ? pool.getX() : Value();
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
    for (Value operand : op->getOperands())
      if (!hasSamples(operand) && !isSameForAll(operand, *common))
        return false;
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
      .Case([&](nn::ScatterAddOp scatter) {
        auto x = pooledBy(scatter.getIndices());
        if (!x || !hasSamples(x) || !hasSamples(scatter.getUpdates()) ||
            scatter.getTable().getType().getNumElements() != tensorType(x).getNumElements() ||
            !isSameForAll(scatter.getTable(), strides.lookup(x)))
          return false;
        strides[scatter.getResult()] = int64_t(strides.lookup(x));
        return true;
      })
      .Case<nn::ConvolutionOp, nn::ConvolutionInputGradientOp>(
          [&](auto) { return !places[1] && places[0]->dimension == 0 && put(0, *places[0]); })
      .Case([&](nn::MaxPoolOp pool) {
        // Positions are other numbers for each sample: only what knows that may read them.
        if (isOfPositions(pool))
          return places[0] && places[0]->dimension <= 1;
        return aside([&](int64_t d) { return d > 1; });
      })
      .Case<nn::SumPoolOp, nn::SumPoolGradientOp>(
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

std::optional<SmallVector<int64_t>> BatchAxis::expanded(Value x, ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> result(shape);
  std::optional<Place> from = find(x);
  int64_t added = static_cast<int64_t>(shape.size()) - tensorType(x).getRank();
  if (!from || from->dimension + added < 0)
    return result;
  int64_t &size = result[from->dimension + added];
  if (size != 1 && size != from->elements * inFile)
    return std::nullopt;
  size = from->elements * asked;
  return result;
}

SmallVector<int64_t> BatchAxis::reshaped(Value x, ArrayRef<int64_t> shape, bool zeroCopies) const {
  SmallVector<int64_t> result(shape);
  std::optional<Place> from = find(x);
  if (!from)
    return result;
  SmallVector<int64_t> before(tensorType(x).getShape());
  before[from->dimension] = before[from->dimension] / asked * inFile;
  SmallVector<int64_t> given;
  int64_t open = -1;
  for (int64_t d = 0; d < static_cast<int64_t>(result.size()); ++d) {
    if (result[d] == 0 && zeroCopies && d < static_cast<int64_t>(before.size()))
      result[d] = before[d];
    if (result[d] == -1)
      open = d;
    else
      given.push_back(result[d]);
  }
  std::optional<int64_t> known = nn::elementCount(given);
  if (!known || *known <= 0)
    return SmallVector<int64_t>(shape); // whoever reads it says what is wrong
  if (open >= 0)
    result[open] = computeProduct(before) / *known;
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
