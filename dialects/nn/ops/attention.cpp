// SPDX-License-Identifier: Apache-2.0
//
// nn.attention and its gradient: scores are computed in tiles and never kept (Rabe and Staats,
// 2021; Dao et al., "FlashAttention", 2022). raise-attention makes it of what models write out.
#include "dialects/nn/attention.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/dropout.h"
#include <limits>

using namespace mlir;

namespace trainc::nn {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

LogicalResult checkOperands(std::optional<Location> location, RankedTensorType q,
                            RankedTensorType k, RankedTensorType v, ValueRange masksAndKey,
                            std::optional<int64_t> stream, std::optional<int64_t> dropped) {
  auto has = [&](RankedTensorType type) {
    return type.getRank() == q.getRank() && type.getElementType() == q.getElementType() &&
           type.getNumElements() > 0;
  };
  if (q.getRank() < 3 || !has(q) || !has(k) || !has(v)) // attention-c1
    return emitOptionalError(location,
                             "q, k and v have one rank, at least 3, one element type and no size "
                             "of 0, found ",
                             q, ", ", k, " and ", v);
  int64_t head = q.getRank() - 3, row = head + 1, column = head + 2;
  if (q.getShape().take_front(head) != k.getShape().take_front(head) ||
      k.getShape().take_front(column) != v.getShape().take_front(column) ||
      q.getDimSize(head) % k.getDimSize(head) != 0 ||
      q.getDimSize(column) != k.getDimSize(column)) // attention-c2
    return emitOptionalError(location, "q, k and v fit, found ", q, ", ", k, " and ", v);
  SmallVector<int64_t> scores(q.getShape());
  scores.back() = k.getDimSize(row);
  Type sum = sumTypeOf(q.getElementType());
  auto fits = [&](Value mask) {
    auto type = tensorType(mask);
    return type.getElementType() == sum && type.getRank() == q.getRank() &&
           llvm::all_of(llvm::zip(type.getShape(), scores), [](auto sizes) {
             return std::get<0>(sizes) == 1 || std::get<0>(sizes) == std::get<1>(sizes);
           });
  };
  ValueRange masks = masksOf(masksAndKey);
  if (masks.size() > kMostMasks || !llvm::all_of(masks, fits)) // attention-c3
    return emitOptionalError(location, "there are at most ", kMostMasks,
                             " masks, which broadcast to ", RankedTensorType::get(scores, sum));
  Value key = keyOf(masksAndKey);
  bool fitsDropout =
      dropped ? *dropped >= 1 && *dropped <= kAllDropped && stream.value_or(0) >= 0 : !key;
  if (stream.has_value() != dropped.has_value() || !fitsDropout ||
      (key && key.getType() !=
                  RankedTensorType::get({}, IntegerType::get(q.getContext(), 64)))) // attention-c6
    return emitOptionalError(location, "a dropout has a stream, `dropped` of 1 to ", kAllDropped,
                             " and a number as its key");
  return success();
}

/// The type of a number for each query.
RankedTensorType rowsOf(RankedTensorType q) {
  return RankedTensorType::get(q.getShape().drop_back(), sumTypeOf(q.getElementType()));
}

RankedTensorType resultOf(RankedTensorType q, RankedTensorType v) {
  SmallVector<int64_t> shape(q.getShape());
  shape.back() = v.getShape().back();
  return q.clone(shape);
}

// ---- for the interpreter

/// Where an element of a tensor is that broadcasts to the scores.
int64_t positionOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> batch, int64_t head, int64_t query,
                   int64_t key) {
  int64_t rank = shape.size(), position = 0, stride = 1;
  auto step = [&](int64_t size, int64_t index) {
    position += size == 1 ? 0 : index * stride;
    stride *= size;
  };
  step(shape[rank - 1], key);
  step(shape[rank - 2], query);
  for (int64_t d = rank - 3; d >= 0; --d) {
    step(shape[d], head % batch[d]);
    head /= batch[d];
  }
  return position;
}

/// An attention's scores, a query's at a time.
class Scores {
public:
  template <typename Op>
  Scores(Op op, ArrayRef<Tensor> operands, ArrayRef<Tensor> addends)
      : sizes(op), scale(op.getScale().convertToDouble()), q(operands[0].reals()),
        k(operands[1].reals()), randomKey(op.getKey() ? addends.back().integer(0) : 0) {
    for (const Tensor &mask : addends.drop_back(op.getKey() ? 1 : 0))
      masks.push_back({mask.shape(), mask.reals()});
  }

  int64_t ofKeys(int64_t head) const { return head / sizes.sharing * sizes.keys; } // first row

  std::vector<double> of(int64_t head, int64_t query) const {
    std::vector<double> scores(sizes.keys, kHidden);
    for (int64_t key = 0; key < sizes.visible(query); ++key) {
      double sum = 0;
      for (int64_t d = 0; d < sizes.size; ++d)
        sum += q[(head * sizes.queries + query) * sizes.size + d] *
               k[(ofKeys(head) + key) * sizes.size + d];
      scores[key] = sum * scale;
      for (const auto &[shape, mask] : masks)
        scores[key] += mask[positionOf(shape, sizes.batch, head, query, key)];
    }
    return scores;
  }

  /// What dropout multiplies a weight by.
  double kept(int64_t head, int64_t query, int64_t key) const {
    if (sizes.dropped == 0)
      return 1;
    int64_t element = (head * sizes.queries + query) * sizes.keys + key;
    bool drops = random_bits<kDropoutBits>(randomKey, sizes.stream, element) < sizes.dropped;
    return drops ? 0 : dropoutFactor(sizes.dropped);
  }

  AttentionSizes sizes;
  double scale;
  std::vector<double> q, k; // elements
  int64_t randomKey;
  SmallVector<std::pair<ArrayRef<int64_t>, std::vector<double>>> masks;
};

} // namespace

// ---- attention

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto q = tensorType(adaptor.getQ()), v = tensorType(adaptor.getV());
  if (failed(checkOperands(location, q, tensorType(adaptor.getK()), v, adaptor.getMasksAndKey(),
                           adaptor.getStream(), adaptor.getDropped())))
    return failure();
  types.append({resultOf(q, v), rowsOf(q)});
  return success();
}

LogicalResult AttentionOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                         const llvm::SmallBitVector &needed,
                                         SmallVectorImpl<Value> &operandGradients) {
  if (resultGradients[1])
    return failure(); // of what serves this gradient
  constexpr unsigned kFirstMask = 3;
  SmallVector<int64_t> sizes; // of the gradient of masks
  for (auto [i, mask] : llvm::enumerate(getMasks())) {
    if (!needed[kFirstMask + i])
      continue;
    if (sizes.empty()) {
      sizes.assign(getQ().getType().getRank() - 2, 1);
      sizes.append({getQ().getType().getShape().end()[-2], getK().getType().getShape().end()[-2]});
    }
    for (auto [size, own] : llvm::zip(sizes, tensorType(mask).getShape()))
      size = std::max(size, own);
  }
  OpBuilder &at = builder.op();
  auto op = at.create<AttentionGradientOp>(
      builder.location(), getQ(), getK(), getV(), getResult(), getLogSum(), resultGradients[0],
      getMasksAndKey(), getScaleAttr(), getReachAttr(),
      sizes.empty() ? DenseI64ArrayAttr() : at.getDenseI64ArrayAttr(sizes), getStreamAttr(),
      getDroppedAttr());
  operandGradients.assign({op.getDq(), op.getDk(), op.getDv()});
  for (auto [i, mask] : llvm::enumerate(getMasks())) {
    operandGradients.emplace_back();
    if (!needed[kFirstMask + i])
      continue;
    ArrayRef<int64_t> own = tensorType(mask).getShape();
    SmallVector<int64_t> added;
    for (auto [d, size] : llvm::enumerate(sizes))
      if (own[d] != size)
        added.push_back(static_cast<int64_t>(d));
    Value gradient = added.empty() ? op.getDmask() : builder.reduceSum(op.getDmask(), added);
    operandGradients.back() = builder.reshape(gradient, own);
  }
  operandGradients.resize((*this)->getNumOperands());
  return success();
}

double AttentionOp::flops() {
  AttentionSizes sizes(*this);
  constexpr double perScore = 14; // as of nn.softmax
  return sizes.visiblePairs() * (2.0 * static_cast<double>(sizes.size + sizes.valueSize) +
                                 perScore + sizes.flopsOfDropout());
}

/// Beside the gradient, views of the result alone are read: the gradient then reads it out of the
/// last of these, so that the step can write it in that order.
static void readByGradientAsView(Value result) {
  SmallVector<Operation *> views, gradients;
  for (Operation *user : result.getUsers())
    (isa<AttentionGradientOp>(user) ? gradients : views).push_back(user);
  if (gradients.empty() || views.size() != 1)
    return;
  auto isMove = [](Operation *op) { return isa<ReshapeOp, TransposeOp>(op); };
  while (isMove(views.back()) && views.back()->hasOneUse())
    views.push_back(*views.back()->user_begin());
  while (!views.empty() && !isMove(views.back()))
    views.pop_back();
  if (views.empty())
    return;
  OpBuilder at(result.getContext());
  at.setInsertionPointAfter(views.back());
  Builder builder(at, views.back()->getLoc());
  Value back = views.back()->getResult(0);
  for (Operation *view : llvm::reverse(views)) {
    auto transpose = dyn_cast<TransposeOp>(view);
    back = transpose ? builder.transpose(back, invertPermutationVector(transpose.getPermutation()))
                     : builder.reshape(back, tensorType(view->getOperand(0)).getShape());
  }
  for (Operation *gradient : gradients)
    gradient->replaceUsesOfWith(result, back);
}

SmallVector<Replacement> AttentionOp::lowerToStep(StepBuilder &builder) {
  readByGradientAsView(getResult());
  AttentionStep step(builder, *this, AttentionSizes(*this));
  step.reads(getQ());
  step.reads(getK(), /*ofKeys=*/true);
  step.reads(getV(), /*ofKeys=*/true);
  step.readsRest(getMasksAndKey());
  step.writes(getResult());
  step.writesWhole(getLogSum());
  return step.build("attention", getScale().convertToDouble(), flops(), {"", "log_sum"},
                    {getMaskedToZero()});
}

FailureOr<SmallVector<Tensor>> AttentionOp::interpretResults(ArrayRef<Tensor> operands) {
  Scores scores(*this, operands, operands.drop_front(3));
  const AttentionSizes &sizes = scores.sizes;
  std::vector<double> v = operands[2].reals(), result(getResult().getType().getNumElements()),
                      logSums(getLogSum().getType().getNumElements());
  for (int64_t head = 0; head < sizes.heads(); ++head)
    for (int64_t query = 0; query < sizes.queries; ++query) {
      std::vector<double> weights = scores.of(head, query);
      int64_t row = head * sizes.queries + query;
      double largest = *llvm::max_element(weights), sum = 0;
      if (largest == kHidden && getMaskedToZero()) {
        logSums[row] = -kHidden; // no key has a weight
        continue;
      }
      for (double &weight : weights)
        sum += weight = std::exp(weight - largest);
      logSums[row] = largest + std::log(sum);
      for (int64_t key = 0; key < sizes.keys; ++key)
        for (int64_t d = 0; d < sizes.valueSize; ++d)
          result[row * sizes.valueSize + d] += weights[key] / sum * scores.kept(head, query, key) *
                                               v[(scores.ofKeys(head) + key) * sizes.valueSize + d];
    }
  return SmallVector<Tensor>{Tensor::ofReals(getResult().getType(), result),
                             Tensor::ofReals(getLogSum().getType(), logSums)};
}

// ---- the gradient

LogicalResult AttentionGradientOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                    Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto q = tensorType(adaptor.getQ()), k = tensorType(adaptor.getK()),
       v = tensorType(adaptor.getV());
  if (failed(checkOperands(location, q, k, v, adaptor.getMasksAndKey(), adaptor.getStream(),
                           adaptor.getDropped())))
    return failure();
  RankedTensorType result = resultOf(q, v);
  if (adaptor.getResult().getType() != result || adaptor.getDresult().getType() != result ||
      adaptor.getLogSum().getType() != rowsOf(q)) // attention-c4
    return emitOptionalError(location, "result and dresult are ", result, " and log_sum is ",
                             rowsOf(q));
  types.append({q, k, v});
  std::optional<ArrayRef<int64_t>> sizes = adaptor.getDmaskSizes();
  if (!sizes)
    return success();
  SmallVector<int64_t> scores(q.getShape());
  scores.back() = k.getShape().end()[-2];
  bool fits =
      sizes->size() == scores.size() && sizes->take_back(2) == ArrayRef(scores).take_back(2);
  for (size_t d = 0; fits && d < scores.size(); ++d)
    fits = (*sizes)[d] == scores[d] || (*sizes)[d] == 1;
  if (!fits) // attention-c5
    return emitOptionalError(location, "dmask_sizes are ", scores,
                             ", or 1 in front of the last two");
  types.push_back(RankedTensorType::get(*sizes, sumTypeOf(q.getElementType())));
  return success();
}

double AttentionGradientOp::flops() {
  AttentionSizes sizes(*this);
  constexpr double perScore = 16;
  return sizes.visiblePairs() * (static_cast<double>(6 * sizes.size + 4 * sizes.valueSize) +
                                 perScore + sizes.flopsOfDropout());
}

SmallVector<Replacement> AttentionGradientOp::lowerToStep(StepBuilder &builder) {
  AttentionStep step(builder, *this, AttentionSizes(*this));
  step.reads(getQ());
  step.reads(getK(), /*ofKeys=*/true);
  step.reads(getV(), /*ofKeys=*/true);
  step.reads(getOperand(3));
  step.readsWhole(getLogSum());
  step.reads(getDresult());
  step.readsRest(getMasksAndKey());
  step.writes(getDq());
  step.writes(getDk(), /*ofKeys=*/true);
  step.writes(getDv(), /*ofKeys=*/true);
  SmallVector<StringRef> roles{"q", "k", "v"};
  if (Value mask = getDmask()) {
    step.writesMask(mask);
    roles.push_back("mask");
  }
  return step.build("attention_gradient", getScale().convertToDouble(), flops(), roles, {},
                    /*isGradient=*/true);
}

FailureOr<SmallVector<Tensor>> AttentionGradientOp::interpretResults(ArrayRef<Tensor> operands) {
  Scores scores(*this, operands, operands.drop_front(6));
  const AttentionSizes &sizes = scores.sizes;
  std::vector<double> v = operands[2].reals(), result = operands[3].reals(),
                      logSums = operands[4].reals(), dresult = operands[5].reals(),
                      dq(scores.q.size()), dk(scores.k.size()), dv(v.size()),
                      dmask(getDmask() ? tensorType(getDmask()).getNumElements() : 0);
  for (int64_t head = 0; head < sizes.heads(); ++head)
    for (int64_t query = 0; query < sizes.queries; ++query) {
      std::vector<double> row = scores.of(head, query);
      int64_t at = head * sizes.queries + query;
      const double *dy = &dresult[at * sizes.valueSize];
      double mean = 0; // of the weights' gradients
      for (int64_t d = 0; d < sizes.valueSize; ++d)
        mean += dy[d] * result[at * sizes.valueSize + d];
      for (int64_t key = 0; key < sizes.keys; ++key) {
        int64_t of = scores.ofKeys(head) + key;
        double weight = std::exp(row[key] - logSums[at]), kept = scores.kept(head, query, key),
               slope = 0;
        for (int64_t d = 0; d < sizes.valueSize; ++d) {
          slope += kept * dy[d] * v[of * sizes.valueSize + d];
          dv[of * sizes.valueSize + d] += weight * kept * dy[d];
        }
        double gradient = weight * (slope - mean);
        if (!dmask.empty())
          dmask[positionOf(*getDmaskSizes(), sizes.batch, head, query, key)] += gradient;
        for (int64_t d = 0; d < sizes.size; ++d) {
          dq[at * sizes.size + d] += gradient * scores.scale * scores.k[of * sizes.size + d];
          dk[of * sizes.size + d] += gradient * scores.scale * scores.q[at * sizes.size + d];
        }
      }
    }
  SmallVector<Tensor> results{Tensor::ofReals(getDq().getType(), dq),
                              Tensor::ofReals(getDk().getType(), dk),
                              Tensor::ofReals(getDv().getType(), dv)};
  if (getDmask())
    results.push_back(Tensor::ofReals(tensorType(getDmask()), dmask));
  return results;
}

} // namespace trainc::nn
