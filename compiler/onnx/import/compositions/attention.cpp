// SPDX-License-Identifier: Apache-2.0
//
// ONNX Attention: softmax of scaled products of queries and keys, and with that the mean of the
// values (Vaswani et al., 2017). A group of query heads that share a key (Ainslie et al., "GQA",
// 2023) is one matrix product with it, so that keys and values are not repeated.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal otherPrecisions({"Attention"},
                                         "`softmax_precision` other than 1 (float), 11 (double)");
static const OnnxRefusal mixedValues({"Attention"},
                                     "queries and values of different element types");

namespace {

enum Input { kQueries, kKeys, kValues, kMask, kPastKeys, kPastValues, kValidKeys };
enum Output { kResult, kPresentKeys, kPresentValues, kScores };

class Attention {
public:
  explicit Attention(OnnxNode &node) : node(node), builder(node.builder()) {}

  OnnxResults build() {
    if (failed(readHeads()) || failed(joinPast()) || failed(checkShapes()))
      return failure();
    if (failed(score()) || failed(addMasks()))
      return failure();
    // A query that sees no key gets zeros.
    Value weights = builder.create<SoftmaxOp>(inPrecision(masked),
                                              /*masked_to_zero=*/masked != capped);
    weights = builder.named("weights", builder.cast(weights, tensorType(masked).getElementType()));
    Value result = ungrouped(builder.matmul(grouped(weights), values), valueSize());
    SmallVector<Value> results{likeQueries(result), keys, values};
    if (node.outputUsed(kScores)) {
      int64_t mode = node.integer("qk_matmul_output_mode", 0);
      if (mode < 0 || mode > 3)
        return node.error("qk_matmul_output_mode is " + llvm::Twine(mode) + ", expected 0 to 3");
      results.push_back(mode == 0 ? products : mode == 1 ? capped : mode == 2 ? masked : weights);
    }
    return results;
  }

private:
  // [batch, heads, tokens, size] of an operand of that shape or [batch, tokens, heads x size].
  FailureOr<Value> headsOf(unsigned input, StringRef attribute) {
    Value x = node.input(input);
    RankedTensorType type = tensorType(x);
    if (!isa<FloatType>(type.getElementType()) || (type.getRank() != 3 && type.getRank() != 4))
      return node.error("expects floats [batch, heads, tokens, size] or [batch, tokens, heads x "
                        "size]");
    if (type.getRank() == 4)
      return x;
    int64_t heads = node.integer(attribute, 0), width = type.getDimSize(2);
    if (heads < 1 || width % heads != 0)
      return node.error(attribute + " is " + llvm::Twine(heads) + ", which does not divide " +
                        llvm::Twine(width));
    Value split =
        builder.reshape(x, {type.getDimSize(0), type.getDimSize(1), heads, width / heads});
    return builder.transpose(split, {0, 2, 1, 3});
  }

  LogicalResult readHeads() {
    FailureOr<Value> q = headsOf(kQueries, "q_num_heads"), k = headsOf(kKeys, "kv_num_heads"),
                     v = headsOf(kValues, "kv_num_heads");
    if (failed(q) || failed(k) || failed(v))
      return failure();
    queries = *q;
    keys = *k;
    values = *v;
    return success();
  }

  /// Keys and values of tokens before these.
  LogicalResult joinPast() {
    if (node.hasInput(kPastKeys) != node.hasInput(kPastValues))
      return node.error("has only one of past_key and past_value");
    if (!node.hasInput(kPastKeys))
      return success();
    Value pastKeys = node.input(kPastKeys), pastValues = node.input(kPastValues);
    auto fits = [&](Value past, Value now) {
      ArrayRef<int64_t> before = tensorType(past).getShape(), shape = tensorType(now).getShape();
      return before.size() == 4 && before[0] == shape[0] && before[1] == shape[1] &&
             before[3] == shape[3] &&
             tensorType(past).getElementType() == tensorType(now).getElementType();
    };
    if (!fits(pastKeys, keys) || !fits(pastValues, values))
      return node.error(
          "past_key or past_value is not [batch, heads, tokens, size] of its keys and "
          "values");
    pastTokens = tensorType(pastKeys).getDimSize(2);
    keys = builder.create<ConcatOp>(ValueRange{pastKeys, keys}, 2);
    values = builder.create<ConcatOp>(ValueRange{pastValues, values}, 2);
    return success();
  }

  LogicalResult checkShapes() {
    shape = llvm::to_vector(tensorType(queries).getShape());
    ArrayRef<int64_t> k = tensorType(keys).getShape(), v = tensorType(values).getShape();
    keyHeads = k[1];
    tokens = k[2];
    if (k[0] != shape[0] || v[0] != shape[0] || k[3] != shape[3] || v[1] != k[1] || v[2] != k[2] ||
        keyHeads < 1 || shape[1] % keyHeads != 0)
      return node.error("its queries, keys and values do not fit: expected one batch, one size of "
                        "queries and keys, as many values as keys, and query heads that the key "
                        "heads divide");
    if (node.hasInput(kValidKeys) && failed(readValidKeys()))
      return failure();
    int64_t precision = node.integer("softmax_precision", 1);
    if (precision != 1 && precision != 11)
      return node.error(otherPrecisions.told("softmax_precision is " + llvm::Twine(precision) +
                                             ", expected 1 (float) or 11 (double)"),
                        "softmax_precision 1");
    if (tensorType(queries).getElementType() != tensorType(values).getElementType())
      return node.error(
          mixedValues.told("its queries and values have different element types, which is not "
                           "supported"),
          "insert a Cast before the node");
    return success();
  }

  /// How many keys of each sample count; those after are pads.
  LogicalResult readValidKeys() {
    Value counts = node.input(kValidKeys);
    if (node.hasInput(kPastKeys))
      return node.error("has nonpad_kv_seqlen besides past_key and past_value");
    if (tensorType(counts) != RankedTensorType::get({shape[0]}, builder.op().getI64Type()))
      return node.error("nonpad_kv_seqlen is not one integer of 64 bits for each of " +
                        llvm::Twine(shape[0]) + " samples");
    validKeys = counts;
    return success();
  }

  /// Scores in the type that softmax_precision names; those of doubles keep theirs.
  Value inPrecision(Value scores) {
    constexpr int64_t kDouble = 11;
    return node.integer("softmax_precision", 1) == kDouble
               ? builder.cast(scores, builder.op().getF64Type())
               : scores;
  }

  int64_t valueSize() const { return tensorType(values).getDimSize(3); }

  /// Rows of all query heads that share a key head, one after the other.
  Value grouped(Value x) {
    ArrayRef<int64_t> of = tensorType(x).getShape();
    return builder.reshape(x, {shape[0], keyHeads, shape[1] / keyHeads * shape[2], of.back()});
  }
  Value ungrouped(Value x, int64_t size) {
    return builder.reshape(x, {shape[0], shape[1], shape[2], size});
  }

  LogicalResult score() {
    double scale = node.real("scale", 1 / std::sqrt(double(shape[3]))),
           cap = node.real("softcap", 0);
    Value product = builder.matmul(grouped(queries), keys, false, /*transposeB=*/true);
    products = builder.named("scores", builder.scale(ungrouped(product, tokens), scale));
    capped = products;
    if (!(cap >= 0))
      return node.error("softcap is " + std::to_string(cap) + ", expected no negative number");
    if (cap > 0) {
      Value limit = builder.constant(cap, products.getType());
      capped = builder.mul(builder.create<TanhOp>(builder.div(products, limit)), limit);
    }
    return success();
  }

  LogicalResult addMasks() {
    masked = capped;
    int64_t left = node.integer("left_window_size", -1),
            right = node.integer("right_window_size", -1);
    if (left < -1 || right < -1)
      return node.error("its window is " + llvm::Twine(std::min(left, right)) +
                        " wide, expected -1 or more");
    if (node.integer("is_causal", 0) != 0)
      right = 0;
    if (left >= 0 || right >= 0)
      masked = where(window(left, right));
    if (validKeys) {
      auto type = RankedTensorType::get({shape[0], 1, 1, tokens}, builder.op().getI64Type());
      Value isValid = builder.create<LessOp>(builder.create<IotaOp>(type, 3),
                                             builder.broadcast(validKeys, {0}, type.getShape()));
      masked = where(builder.broadcastTo(isValid, tensorType(masked).getShape()));
    }
    return node.hasInput(kMask) ? addMask() : success();
  }

  /// Scores of keys that are seen.
  Value where(Value isSeen) {
    return builder.select(
        isSeen, masked,
        builder.constant(-std::numeric_limits<double>::infinity(), masked.getType()));
  }

  /// Whether a key is as near the query as this, before it and after it; -1: however far.
  Value window(int64_t left, int64_t right) {
    SmallVector<int64_t> sizes{shape[2], tokens};
    if (validKeys) // the last query stands beside the last key that counts
      sizes.insert(sizes.begin(), {shape[0], 1});
    auto type = RankedTensorType::get(sizes, builder.op().getI64Type());
    int64_t rank = type.getRank();
    Value first = builder.constant(double(validKeys ? -shape[2] : pastTokens), type);
    if (validKeys)
      first = builder.add(builder.broadcast(validKeys, {0}, sizes), first);
    Value key = builder.create<IotaOp>(type, rank - 1);
    Value query = builder.add(builder.create<IotaOp>(type, rank - 2), first);
    Value isSeen;
    auto require = [&](Value holds) {
      isSeen = isSeen ? builder.create<AndOp>(isSeen, holds) : holds;
    };
    if (right >= 0)
      require(builder.create<GreaterOrEqualOp>(
          builder.add(query, builder.constant(double(right), type)), key));
    if (left >= 0)
      require(builder.create<GreaterOrEqualOp>(
          builder.add(key, builder.constant(double(left), type)), query));
    return builder.broadcastTo(isSeen, tensorType(masked).getShape());
  }

  /// A mask that ends before the keys, which hides the others.
  Value withAllKeys(Value mask) {
    auto type = tensorType(mask);
    SmallVector<int64_t> rest(type.getShape());
    if (rest.empty() || rest.back() < 2 || rest.back() >= tokens)
      return mask;
    rest.back() = tokens - rest.back();
    bool isBool = type.getElementType().isInteger(1);
    Value hidden =
        builder.constant(isBool ? 0 : -std::numeric_limits<double>::infinity(), type.clone(rest));
    return builder.create<ConcatOp>(ValueRange{mask, hidden}, type.getRank() - 1);
  }

  LogicalResult addMask() {
    Value mask = withAllKeys(node.input(kMask));
    RankedTensorType type = tensorType(mask);
    auto all = tensorType(masked);
    std::optional<SmallVector<int64_t>> both = broadcastShapes(type.getShape(), all.getShape());
    if (!both || ArrayRef(*both) != all.getShape())
      return node.error("its attn_mask does not fit scores [batch, heads, queries, keys]");
    mask = builder.broadcastTo(mask, all.getShape());
    if (type.getElementType().isInteger(1))
      masked = where(mask);
    else if (type.getElementType() == all.getElementType())
      masked = builder.add(masked, mask);
    else
      return node.error("its attn_mask is neither bool nor of the type of its queries",
                        "insert a Cast before the node");
    return success();
  }

  /// In the layout in which the queries came.
  Value likeQueries(Value result) {
    if (tensorType(node.input(kQueries)).getRank() == 4)
      return result;
    return builder.reshape(builder.transpose(result, {0, 2, 1, 3}),
                           {shape[0], shape[2], shape[1] * valueSize()});
  }

  OnnxNode &node;
  Builder &builder;
  Value queries, keys, values;    // [batch, heads, tokens, size]
  Value products, capped, masked; // [batch, heads, queries, keys]
  Value validKeys;                // how many of each sample's keys count; null where all do
  SmallVector<int64_t> shape;     // of the queries
  int64_t keyHeads = 0, tokens = 0, pastTokens = 0;
};

} // namespace

static OnnxResults importAttention(OnnxNode &node) { return Attention(node).build(); }

static OnnxRegistration attention("Attention", 23, importAttention);

} // namespace trainc::nn
