// SPDX-License-Identifier: Apache-2.0
//
// ONNX's LSTM, GRU and RNN as far as they are alike: the product of all inputs with W is one, in
// front of the recurrence, and what a direction gives is put together after it.
#include "dialects/nn/recurrence.h"

using namespace mlir;

namespace trainc::nn {

namespace {

enum Input : unsigned { inputX, inputW, inputR, inputB, inputLengths, inputH, inputC, inputP };

/// The activations that ONNX knows, in lower case, and what they take.
struct ActivationNumbers {
  StringRef name;
  std::optional<double> alpha, beta; // defaults of those that it takes
};
constexpr double kNone = 0;

std::optional<ActivationNumbers> numbersOf(StringRef name) {
  static const ActivationNumbers all[] = {
      {"sigmoid", {}, {}},      {"tanh", {}, {}},          {"relu", {}, {}},
      {"affine", 1.0, 0.0},     {"leakyrelu", 0.01, {}},   {"thresholdedrelu", 1.0, {}},
      {"scaledtanh", 1.0, 1.0}, {"hardsigmoid", 0.2, 0.5}, {"elu", 1.0, {}},
      {"softsign", {}, {}},     {"softplus", {}, {}}};
  for (const ActivationNumbers &known : all)
    if (known.name == name)
      return known;
  return std::nullopt;
}

class RecurrentLayer {
public:
  RecurrentLayer(OnnxNode &node, const RecurrentKind &kind)
      : node(node), kind(kind), builder(node.builder()) {}

  LogicalResult read() {
    return failed(readSizes()) || failed(readOperands()) || failed(readLengths()) ||
                   failed(readActivations())
               ? failure()
               : success();
  }

  RecurrentDirection direction(int64_t number) {
    RecurrentDirection result;
    int64_t blocks = kind.blocks * hidden;
    Value rows = builder.reshape(x, {steps * batch, tensorType(x).getDimSize(2)});
    Value product = builder.matmul(rows, ofDirection(inputW, number), false, true);
    result.gates = builder.reshape(builder.named("projected", product), {steps, batch, blocks});
    result.r = ofDirection(inputR, number);
    result.bias = ofDirection(inputB, number, {2 * blocks});
    result.h = ofDirection(inputH, number, {batch, hidden});
    if (kind.hasCell) {
      result.c = ofDirection(inputC, number, {batch, hidden});
      result.peepholes = ofDirection(inputP, number, {3 * hidden});
    }
    result.lengths = lengths;
    size_t count = kind.usual.size();
    auto own = [&](auto &list) { return ArrayRef(list).slice(number * count, count); };
    result.activations = builder.op().getStrArrayAttr(
        llvm::map_to_vector(own(names), [](const std::string &name) { return StringRef(name); }));
    result.alphas.assign(own(alphas).begin(), own(alphas).end());
    result.betas.assign(own(betas).begin(), own(betas).end());
    result.clip = clip;
    result.reverse = directions == 2 ? number == 1 : isReverse;
    return result;
  }

  /// Y of one direction, [steps, 1, batch, hidden]: zero after a sequence's end.
  Value outputs(const RecurrentDirection &of, Value states) {
    Value y = behindSteps(builder, states, of.reverse);
    if (isMasked) {
      auto type = tensorType(y);
      auto places = RankedTensorType::get(type.getShape(), builder.op().getI64Type());
      Value step = builder.create<IotaOp>(places, 0);
      Value inside = builder.create<LessOp>(step, builder.broadcast(lengths, {1}, type.getShape()));
      y = builder.select(inside, y, builder.constant(0, type));
    }
    return builder.reshape(y, {steps, 1, batch, hidden});
  }
  Value last(const RecurrentDirection &of, Value states) {
    Value state = builder.slice(states, 0, of.reverse ? 0 : steps, 1);
    return builder.reshape(state, {1, batch, hidden});
  }
  /// Directions joined; with layout 1 the batch is moved to the front.
  Value joined(ArrayRef<Value> parts, int64_t dimension) {
    Value all = parts.size() == 1 ? parts[0] : builder.create<ConcatOp>(parts, dimension);
    if (!batchFirst)
      return all;
    return tensorType(all).getRank() == 4 ? builder.transpose(all, {2, 0, 1, 3})
                                          : builder.transpose(all, {1, 0, 2});
  }

  int64_t directions = 1;

private:
  LogicalResult readSizes() {
    std::string direction = node.string("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      return node.error("attribute 'direction' is '" + direction + "'",
                        "forward, reverse or bidirectional");
    directions = direction == "bidirectional" ? 2 : 1;
    isReverse = direction == "reverse";
    int64_t layout = node.integer("layout", 0);
    if (layout != 0 && layout != 1)
      return node.error("attribute 'layout' is " + llvm::Twine(layout) + ", expected 0 or 1");
    batchFirst = layout == 1;
    x = node.input(inputX);
    auto type = tensorType(x), r = tensorType(node.input(inputR));
    if (!isa<FloatType>(type.getElementType()) || type.getRank() != 3)
      return node.error("input 'X' is not a float tensor of rank 3");
    if (batchFirst)
      x = builder.transpose(x, {1, 0, 2});
    type = tensorType(x);
    steps = type.getDimSize(0), batch = type.getDimSize(1);
    if (r.getRank() != 3)
      return node.error("input 'R' has rank " + llvm::Twine(r.getRank()) + ", expected 3");
    hidden = r.getDimSize(2);
    if (hidden < 1)
      return node.error("input 'R' is made for a hidden size of 0, expected 1 or more");
    if (int64_t wanted = node.integer("hidden_size", hidden); wanted != hidden)
      return node.error("attribute 'hidden_size' is " + llvm::Twine(wanted) +
                        ", but input 'R' is made for " + llvm::Twine(hidden));
    clip = node.real("clip", 0);
    if (node.hasAttribute("clip") && !(clip > 0))
      return node.error("attribute 'clip' is not positive");
    return success();
  }

  LogicalResult expect(Input input, StringRef name, ArrayRef<int64_t> shape) {
    if (!node.hasInput(input))
      return success();
    auto type = tensorType(node.input(input));
    if (type.getShape() == shape && type.getElementType() == tensorType(x).getElementType())
      return success();
    std::string found, expected;
    llvm::raw_string_ostream foundStream(found), expectedStream(expected);
    llvm::interleave(type.getShape(), foundStream, "x");
    llvm::interleave(shape, expectedStream, "x");
    return node.error("input '" + name + "' is " + foundStream.str() + ", expected " +
                      expectedStream.str() + " of input 'X''s type");
  }

  LogicalResult readOperands() {
    int64_t blocks = kind.blocks * hidden;
    SmallVector<int64_t> state{directions, batch, hidden};
    if (batchFirst)
      std::swap(state[0], state[1]);
    if (failed(expect(inputW, "W", {directions, blocks, tensorType(x).getDimSize(2)})) ||
        failed(expect(inputR, "R", {directions, blocks, hidden})) ||
        failed(expect(inputB, "B", {directions, 2 * blocks})) ||
        failed(expect(inputH, "initial_h", state)))
      return failure();
    if (!kind.hasCell)
      return success();
    return failed(expect(inputC, "initial_c", state)) ||
                   failed(expect(inputP, "P", {directions, 3 * hidden}))
               ? failure()
               : success();
  }

  LogicalResult readLengths() {
    auto type = RankedTensorType::get({batch}, builder.op().getI64Type());
    if (!node.hasInput(inputLengths)) {
      lengths = builder.constant(static_cast<double>(steps), type);
      return success();
    }
    Value given = node.input(inputLengths);
    if (tensorType(given).getShape() != type.getShape() ||
        !isa<IntegerType>(tensorType(given).getElementType()))
      return node.error("input 'sequence_lens' has not one integer for each of " +
                        llvm::Twine(batch) + " sequences");
    lengths = builder.cast(given, builder.op().getI64Type());
    isMasked = true;
    if (auto known = node.integers(inputLengths)) {
      for (int64_t length : *known)
        if (length < 0 || length > steps)
          return node.error("input 'sequence_lens' has " + llvm::Twine(length) +
                            ", expected 0 to " + llvm::Twine(steps));
      isMasked = llvm::any_of(*known, [&](int64_t length) { return length < steps; });
    }
    return success();
  }

  LogicalResult readActivations() {
    size_t count = kind.usual.size() * directions;
    if (auto given = node.strings("activations"); given && !given->empty()) {
      for (StringRef name : *given)
        names.push_back(name.lower());
      if (names.size() != count)
        return node.error("attribute 'activations' has " + llvm::Twine(names.size()) +
                          " names, expected " + llvm::Twine(count));
    } else {
      for (int64_t direction = 0; direction < directions; ++direction)
        for (StringRef name : kind.usual)
          names.push_back(name.str());
    }
    // The numbers are those of the functions that take some, in order.
    SmallVector<double> givenAlphas =
                            node.reals("activation_alpha").value_or(SmallVector<double>()),
                        givenBetas = node.reals("activation_beta").value_or(SmallVector<double>());
    size_t nextAlpha = 0, nextBeta = 0;
    for (const std::string &name : names) {
      auto numbers = numbersOf(name);
      if (!numbers)
        return node.error("attribute 'activations' has '" + name + "', which ONNX does not define");
      auto take = [](std::optional<double> otherwise, ArrayRef<double> from, size_t &next) {
        if (!otherwise)
          return kNone;
        return next < from.size() ? from[next++] : *otherwise;
      };
      alphas.push_back(take(numbers->alpha, givenAlphas, nextAlpha));
      betas.push_back(take(numbers->beta, givenBetas, nextBeta));
    }
    std::string why;
    ScopedDiagnosticHandler handler(builder.op().getContext(),
                                    [&](Diagnostic &diagnostic) { why = diagnostic.str(); });
    auto list = builder.op().getStrArrayAttr(
        llvm::map_to_vector(names, [](const std::string &name) { return StringRef(name); }));
    if (failed(checkActivations(builder.location(), list, alphas, betas, APFloat(clip), count)))
      return node.error("attribute 'activation_alpha': " + why);
    return success();
  }

  /// An input's part of one direction as a tensor of `shape`, of W and R as their matrix; zeros
  /// where the input is absent.
  Value ofDirection(Input input, int64_t number, ArrayRef<int64_t> shape = {}) {
    if (!node.hasInput(input))
      return builder.constant(0, RankedTensorType::get(shape, tensorType(x).getElementType()));
    bool isState = input == inputH || input == inputC;
    Value all = node.input(input);
    if (isState && batchFirst)
      all = builder.transpose(all, {1, 0, 2});
    Value own = builder.slice(all, 0, number, 1);
    return builder.reshape(own, tensorType(own).getShape().drop_front());
  }

  OnnxNode &node;
  const RecurrentKind &kind;
  Builder &builder;
  Value x, lengths;
  int64_t steps = 0, batch = 0, hidden = 0;
  bool isReverse = false, batchFirst = false, isMasked = false;
  double clip = 0;
  SmallVector<std::string> names;
  SmallVector<double> alphas, betas;
};

} // namespace

OnnxResults
importRecurrent(OnnxNode &node, const RecurrentKind &kind,
                llvm::function_ref<RecurrentResults(Builder &, const RecurrentDirection &)> build) {
  RecurrentLayer layer(node, kind);
  if (failed(layer.read()))
    return failure();
  Builder &builder = node.builder();
  SmallVector<Value> outputs, states, cells;
  for (int64_t number = 0; number < layer.directions; ++number) {
    RecurrentDirection direction = layer.direction(number);
    RecurrentResults results = build(builder, direction);
    outputs.push_back(layer.outputs(direction, results.states));
    states.push_back(layer.last(direction, results.states));
    if (results.cell) {
      SmallVector<int64_t> shape{1};
      llvm::append_range(shape, tensorType(results.cell).getShape());
      cells.push_back(builder.reshape(results.cell, shape));
    }
  }
  SmallVector<Value> all{layer.joined(outputs, 1), layer.joined(states, 0)};
  if (!cells.empty())
    all.push_back(layer.joined(cells, 0));
  return all;
}

OnnxWeight weightsOfRecurrent(unsigned input, ArrayRef<int64_t>) {
  switch (input) {
  case inputW:
  case inputR:
    return OnnxWeight::matrix;
  case inputB:
  case inputP:
    return OnnxWeight::bias;
  default:
    return OnnxWeight::none;
  }
}

} // namespace trainc::nn
