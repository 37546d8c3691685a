// SPDX-License-Identifier: Apache-2.0
//
// raise-attention: the products and the softmax of attention become one operation.
//
// Problem: written out, attention has a number in memory for each query and key of a head, several
// times over. Method: from each softmax whose only reader is a product with values, back through
// what scales and masks the scores to the product of queries and keys, where nobody else reads
// any of this. nn.attention then takes masks as they were before they were repeated for heads or
// samples, and a mask that hides later keys as its `reach`, where none of them has a weight. Where
// `keep` matches the node of a value that would be no more, the attention stays written out. Of
// weights with dropout there are two, that of training and that of inference. Known weakness:
// capped scores and a softmax in another precision are left as they are. A warning says so where
// that takes much memory.
#include "dialects/names/node_name.h"
#include "dialects/nn/attention.h"
#include "dialects/nn/raised_pattern.h"
#include "dialects/nn/views.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/attention/unraised.h"
#include "passes/attention/written_dropout.h"
#include "passes/attention/written_scores.h"
#include "passes/kernels/value_views.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"
#include "passes/simplify.h"
#include <map>

using namespace mlir;

namespace trainc {
namespace {

using nn::tensorType;
using Shape = SmallVector<int64_t>;

/// `value` without a number that it is a multiple of, in front of views too.
Value withoutScale(nn::Builder &builder, Value value, double &scale) {
  Operation *op = value.getDefiningOp();
  if (auto mul = dyn_cast_or_null<nn::MulOp>(op)) {
    for (auto [number, other] :
         {std::pair(mul.getA(), mul.getB()), std::pair(mul.getB(), mul.getA())})
      if (auto by = nn::splatOfFloats(number)) {
        scale *= *by;
        return other;
      }
  } else if (auto div = dyn_cast_or_null<nn::DivOp>(op)) {
    if (auto by = nn::splatOfFloats(div.getB())) {
      scale /= *by;
      return div.getA();
    }
  } else if (isa_and_nonnull<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp>(op)) {
    Value before = withoutScale(builder, op->getOperand(0), scale);
    if (before == op->getOperand(0))
      return value;
    IRMapping operands;
    operands.map(op->getOperand(0), before);
    return builder.op().clone(*op, operands)->getResult(0);
  }
  return value;
}

Value swapped(nn::Builder &builder, Value value, bool isWanted) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(value).getRank()));
  if (isWanted)
    std::swap(permutation.end()[-1], permutation.end()[-2]);
  return isWanted ? builder.transpose(value, permutation) : value;
}

/// What views repeat for neighbouring heads of [batch, heads, rows, columns], without the
/// repetition; itself where there is none.
Value withoutRepeatedHeads(nn::Builder &builder, Value heads) {
  Value above = heads;
  for (bool repeats = false; !repeats; above = above.getDefiningOp()->getOperand(0)) {
    Operation *view = above.getDefiningOp();
    if (!isa_and_nonnull<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp>(view))
      return heads;
    repeats = isa<nn::BroadcastOp>(view);
  }
  planning::Sizes shape = sizesOf(heads), own = shape;
  size_t head = shape.size() - 3;
  int64_t elements = tensorType(above).getNumElements();
  int64_t repeated = elements == 0 ? 0 : planning::elementCount(shape) / elements;
  if (repeated < 2 || shape[head] % repeated != 0 ||
      elements * repeated != planning::elementCount(shape))
    return heads;
  own[head] /= repeated;
  planning::Sizes space = own;
  space.insert(space.begin() + head + 1, repeated);
  std::optional<planning::Split> split;
  auto indices =
      planning::delinearise(planning::linearIndex(space, 0, space.size()), space, shape, split);
  std::optional<planning::IndexMap> map;
  if (indices)
    map = planning::IndexMap{space, *indices};
  for (Value value = heads; map && value != above; value = value.getDefiningOp()->getOperand(0))
    map = operandMap(value.getDefiningOp(), *map, split);
  if (!map)
    return heads;
  planning::Affine position = map->linear(sizesOf(above));
  planning::Sizes strides = planning::rowMajorStrides(own);
  strides.insert(strides.begin() + head + 1, 0);
  for (size_t d = 0; d < space.size(); ++d)
    if (space[d] > 1 && position.coefficient(d) != strides[d])
      return heads;
  return position.offset == 0 ? builder.reshape(above, own) : heads;
}

/// Attention written out, from the scores to the product with values.
class WrittenAttention {
public:
  bool read(nn::SoftmaxOp op) {
    softmax = op;
    Value weights = throughReshapes(op.getResult());
    dropout = writtenDropout(weights);
    if (dropout)
      weights = throughReshapes(dropout->result.getResult());
    mix = weights.hasOneUse() ? dyn_cast<nn::MatmulOp>(*weights.user_begin()) : nn::MatmulOp();
    auto found = mix && mix.getA() == weights && !mix.getTransposeA() ? writtenScores(op.getX())
                                                                      : std::nullopt;
    if (!found || tensorType(weights).getNumElements() == 0)
      return false;
    scores = *found;
    reach = takeReach(scores.masks);
    return canBeAdded(scores.masks) && readSizes();
  }

  /// Whether a value that raising removes is of a node with such a name.
  bool isNamed(const name_pattern &pattern) const {
    auto matches = [&](Operation *op) { return pattern.matches(nodeName(op->getLoc()).node); };
    return matches(softmax) || (dropout && matches(dropout->product)) ||
           llvm::any_of(scores.passed, matches);
  }

  void raise() {
    OpBuilder at(mix);
    nn::Builder builder(at, nn::wholeLocation(mix, softmax));
    double scale = scores.scale;
    Value q = withoutScale(builder, scores.product.getA(), scale),
          k = withoutScale(builder, scores.product.getB(), scale), v = mix.getB();
    q = headsOf(builder, swapped(builder, q, scores.product.getTransposeA()), 1);
    k = headsOf(builder, swapped(builder, k, !scores.product.getTransposeB()), sharing);
    v = headsOf(builder, swapped(builder, v, mix.getTransposeB()), sharing);
    if (sharing == 1) {
      Value ofKeys = withoutRepeatedHeads(builder, k), ofValues = withoutRepeatedHeads(builder, v);
      if (headsIn(ofKeys) == headsIn(ofValues)) {
        k = ofKeys;
        v = ofValues;
      }
    }
    auto op = at.create<nn::AttentionOp>(
        builder.location(), q, k, v, masks(builder), at.getF64FloatAttr(scale),
        reach ? at.getI64IntegerAttr(*reach) : IntegerAttr(), softmax.getMaskedToZeroAttr(),
        /*stream=*/IntegerAttr(), /*dropped=*/IntegerAttr());
    Value result = op.getResult();
    if (dropout) {
      auto dropping = cast<nn::AttentionOp>(at.clone(*op));
      dropping.setStream(dropout->stream);
      dropping.setDropped(dropout->dropped);
      result = builder.create<nn::TrainingFormOp>(dropping.getResult(), result);
    }
    mix.getResult().replaceAllUsesWith(
        builder.reshape(result, mix.getResult().getType().getShape()));
    mix.erase();
  }

private:
  static Value throughReshapes(Value value) {
    while (value.hasOneUse() && isa<nn::ReshapeOp>(*value.user_begin()))
      value = value.user_begin()->getResult(0);
    return value;
  }

  /// Rows of `matrices` that are one head's after the other.
  static int64_t rowsOf(Value matrices) { return tensorType(matrices).getShape().end()[-2]; }

  static int64_t headsIn(Value matrices) { return tensorType(matrices).getShape().end()[-3]; }

  bool readSizes() {
    ArrayRef<int64_t> shape = softmax.getX().getType().getShape();
    if (shape.size() < 2)
      return false;
    queries = shape.end()[-2];
    keys = shape.back();
    batch.assign(shape.begin(), shape.end() - 2);
    for (const WrittenMask &mask : scores.masks)
      if (mask.shape.size() > batch.size() + 2)
        batch.assign(mask.shape.begin(), mask.shape.end() - 2);
    if (batch.empty())
      batch.push_back(1);
    auto product = scores.product.getResult();
    sharing = rowsOf(product) / queries;
    auto fits = [&](Value matrices) {
      return tensorType(matrices).getShape().back() == keys &&
             rowsOf(matrices) == sharing * queries;
    };
    return sharing > 0 && batch.back() % sharing == 0 && fits(product) && fits(mix.getA()) &&
           llvm::all_of(scores.masks,
                        [&](const WrittenMask &mask) { return inBatch(mask.shape, mask.shape); });
  }

  /// The sizes of a mask of scores of `shape` where these have this batch; nothing where it does
  /// not split the dimensions of the shape.
  std::optional<Shape> inBatch(ArrayRef<int64_t> sizes, ArrayRef<int64_t> shape) const {
    if (shape.size() < 2 || shape.take_back(2) != ArrayRef<int64_t>({queries, keys}))
      return std::nullopt;
    Shape result;
    for (auto [size, whole] : llvm::zip(sizes.drop_back(2), shape.drop_back(2)))
      for (int64_t covered = 1; covered < whole;) {
        if (result.size() == batch.size())
          return std::nullopt;
        int64_t part = batch[result.size()];
        covered *= part;
        if (covered > whole)
          return std::nullopt;
        result.push_back(size == 1 ? 1 : part);
      }
    while (result.size() < batch.size() && batch[result.size()] == 1)
      result.push_back(1);
    if (result.size() != batch.size())
      return std::nullopt;
    llvm::append_range(result, sizes.take_back(2));
    return result;
  }

  /// [batch, heads, rows, columns] of matrices that each serve as many heads as `shared`.
  Value headsOf(nn::Builder &builder, Value matrices, int64_t shared) const {
    Shape shape(batch);
    shape.back() /= shared;
    ArrayRef<int64_t> own = tensorType(matrices).getShape();
    shape.push_back(shared == 1 && sharing > 1 ? queries : own.end()[-2]);
    shape.push_back(own.back());
    return builder.reshape(matrices, shape);
  }

  SmallVector<Value> masks(nn::Builder &builder) {
    SmallVector<Value> values;
    for (const WrittenMask &mask : scores.masks) {
      Value small = withoutRepetition(builder, mask.value);
      if (mask.isCondition) {
        auto type = RankedTensorType::get(tensorType(small).getShape(),
                                          softmax.getX().getType().getElementType());
        Value seen = builder.constant(0, type), hidden = builder.constant(mask.score, type);
        small = mask.holdsForSeen ? builder.select(small, seen, hidden)
                                  : builder.select(small, hidden, seen);
      }
      small = builder.reshape(small, *inBatch(tensorType(small).getShape(), mask.shape));
      if (values.size() < nn::kMostMasks) {
        values.push_back(small);
        continue;
      }
      Value both[] = {values.back(), small};
      (void)builder.unify(both); // they have one rank
      values.back() = builder.add(both[0], both[1]);
    }
    return values;
  }

  nn::SoftmaxOp softmax;
  nn::MatmulOp mix;                      // of values
  std::optional<WrittenDropout> dropout; // of the weights
  WrittenScores scores;
  std::optional<int64_t> reach;
  Shape batch;
  int64_t queries = 0, keys = 0;
  int64_t sharing = 1; // heads of queries for one of keys
};

struct RaiseAttention : ModulePass<RaiseAttention, CheckedPass> {
  RaiseAttention() = default;
  explicit RaiseAttention(StringRef kept) { keep = kept.str(); }

  TextOption keep{*this, "keep", "pattern", "", "nodes whose values are not to disappear"};

  static constexpr StringLiteral flag = "raise-attention";
  static constexpr StringLiteral description = "recognise attention, which then keeps no scores";

  void checkOptions(OptionReader &reader) const override { checkPattern(reader, keep); }

  void runOnOperation() override {
    const std::optional<name_pattern> kept = patternOf(keep);
    SmallVector<nn::SoftmaxOp> softmaxes;
    getOperation().walk([&](nn::SoftmaxOp op) { softmaxes.push_back(op); });
    bool raised = false;
    SmallVector<nn::SoftmaxOp> left;
    for (nn::SoftmaxOp softmax : softmaxes) {
      WrittenAttention attention;
      if (!attention.read(softmax))
        left.push_back(softmax);
      else if (!kept || !attention.isNamed(*kept)) {
        attention.raise();
        raised = true;
      }
    }
    tellOf(left);
    if (raised && failed(simplify(getOperation())))
      signalPassFailure();
  }

private:
  /// Warns of attention that stays written out, unless somebody asks for that.
  void tellOf(ArrayRef<nn::SoftmaxOp> softmaxes) {
    constexpr int64_t kMuch = 16 << 20; // bytes of weights, which are in memory several times over
    std::map<std::string, std::vector<std::string>> byReason;
    size_t count = 0;
    int64_t bytes = 0;
    for (nn::SoftmaxOp softmax : softmaxes)
      if (std::string reason = whyWrittenOut(softmax); !reason.empty()) {
        byReason[reason].push_back(nodeName(softmax.getLoc()).node);
        bytes += bytesOf(softmax.getType());
        ++count;
      }
    if (bytes < kMuch)
      return;
    std::string reasons;
    for (const auto &[reason, nodes] : byReason) {
      reasons += (reasons.empty() ? "" : "; ") + reason + " ('" + nodes.front() + "'";
      reasons += nodes.size() > 1 ? " and " + std::to_string(nodes.size() - 1) + " more)" : ")";
    }
    emitWarning(getOperation().getLoc())
            .append("attention of ", count, count == 1 ? " node" : " nodes",
                    " stays written out, with ", bytes >> 20,
                    " MiB of weights in memory: ", reasons)
            .attachNote()
        << "try: what docs/memory.md says of attention; --recompute light, which keeps no weights; "
           "or --accept written-attention";
  }
};

PassRegistration<RaiseAttention> raiseAttentionRegistration;

} // namespace

std::unique_ptr<Pass> createRaiseAttentionPass(StringRef kept) {
  return std::make_unique<RaiseAttention>(kept);
}

} // namespace trainc
