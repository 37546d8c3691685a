// SPDX-License-Identifier: Apache-2.0
//
// nn.gru, its gradient, and ONNX GRU.
#include "dialects/nn/recurrence.h"

using namespace mlir;

namespace trainc::nn {

namespace {

constexpr int64_t kGruBlocks = 3; // z, r, n

recurrence_sizes sizesOf(GruOp op) {
  return *recurrenceSizes(op.getGates().getType(), op.getR().getType(), kGruBlocks);
}
recurrence_sizes sizesOf(GruGradientOp op) {
  return *recurrenceSizes(op.getActivated().getType(), op.getR().getType(), kGruBlocks);
}

using InterpretedGru = gru_cell<double, any_gate<double>, any_gate<double>>;
template <typename Op> InterpretedGru gruCellOf(Op op) {
  CellFunctions functions = cellFunctions(op);
  return {functions.boundedGate(0), functions.boundedGate(1)};
}

/// An element's gates.
struct GruGates {
  GruGates(std::vector<double> &all, const recurrence_sizes &sizes, int64_t step, int64_t sequence,
           int64_t j)
      : z(all[(step * sizes.batch + sequence) * kGruBlocks * sizes.hidden + j]),
        r((&z)[sizes.hidden]), n((&z)[2 * sizes.hidden]) {}
  double &z, &r, &n;
};

/// Row `row` of r times a state.
double productOfRow(ArrayRef<double> r, int64_t row, ArrayRef<double> state) {
  double total = 0;
  for (auto [k, value] : llvm::enumerate(state))
    total += value * r[row * state.size() + k];
  return total;
}

/// Adds `value` times row `row` of r to the gradient of a state.
void addRowOfWeight(MutableArrayRef<double> gradient, ArrayRef<double> r, int64_t row,
                    double value) {
  for (auto [k, to] : llvm::enumerate(gradient))
    to += value * r[row * gradient.size() + k];
}

} // namespace

// ---- import

// The biases of W and R meet, except the candidate's.
static RecurrentResults buildGru(Builder &builder, const RecurrentDirection &of, bool linear) {
  int64_t hidden = tensorType(of.r).getDimSize(1);
  auto part = [&](int64_t first, int64_t count) {
    return builder.slice(of.bias, 0, first * hidden, count * hidden);
  };
  Value gates = builder.add(part(0, 2), part(kGruBlocks, 2));
  Value bias = builder.named(
      "bias", builder.create<ConcatOp>(
                  SmallVector<Value>{gates, part(2, 1), part(kGruBlocks + 2, 1)}, int64_t(0)));
  auto op = builder.op().create<GruOp>(builder.location(), of.gates, of.r, bias, of.h, of.lengths,
                                       of.activations, of.alphas, of.betas, APFloat(of.clip),
                                       of.reverse, linear);
  return {op.getStates(), Value()};
}

static OnnxResults importGru(OnnxNode &node) {
  static const StringRef usual[] = {"sigmoid", "tanh"};
  bool linear = node.integer("linear_before_reset", 0) != 0;
  return importRecurrent(node, {kGruBlocks, usual, false},
                         [&](Builder &builder, const RecurrentDirection &direction) {
                           return buildGru(builder, direction, linear);
                         });
}

// ---- gru

LogicalResult GruOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                      Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto gates = tensorType(adaptor.getGates());
  auto sizes = recurrenceSizes(gates, tensorType(adaptor.getR()), kGruBlocks);
  if (failed(sizes)) // gru-c1
    return emitOptionalError(
        location,
        "gates are steps x sequences x 3 hidden, with a step, and r is 3 hidden "
        "x hidden, found ",
        gates, " and ", adaptor.getR().getType());
  auto [steps, batch, hidden] = *sizes;
  if (failed(checkOperands(location, gates.getElementType(), // gru-c2
                           {{"bias", adaptor.getBias(), {(kGruBlocks + 1) * hidden}},
                            {"h", adaptor.getH(), {batch, hidden}},
                            {"lengths", adaptor.getLengths(), {batch}}})) ||
      failed(checkActivations(location, adaptor.getActivations(), adaptor.getAlphas(),
                              adaptor.getBetas(), adaptor.getClip(), 2))) // gru-c3
    return failure();
  types.append(
      {gates.clone({steps + 1, batch, hidden}), gates, gates.clone({steps, batch, hidden})});
  return success();
}

LogicalResult GruOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                   const llvm::SmallBitVector &needed,
                                   SmallVectorImpl<Value> &operandGradients) {
  if (resultGradients[1] || resultGradients[2])
    return failure(); // of what serves this gradient
  int64_t hidden = sizesOf(*this).hidden;
  bool reverse = getReverse(), linear = getLinearBeforeReset();
  Type gatesType = getGates().getType(), candidatesType = getCandidates().getType();
  SmallVector<Type> types{gatesType, getH().getType()};
  SmallVector<Value> candidates;
  if (linear) {
    types.push_back(candidatesType);
    candidates.push_back(getCandidates());
  }
  auto op = builder.op().create<GruGradientOp>(builder.location(), types, getR(), getLengths(),
                                               getStates(), getActivated(), resultGradients[0],
                                               candidates, getActivations(), getAlphas(),
                                               getBetas(), getClip(), reverse, linear);
  Value gates = op.getDgates();
  auto ofCandidates = [&] {
    return linear ? Value(op.getDcandidates().front()) : blocksOf(builder, gates, hidden, 2);
  };
  operandGradients.assign(5, Value());
  operandGradients[0] = gates;
  Value before = beforeSteps(builder, getStates(), reverse);
  if (needed[1])
    operandGradients[1] = builder.create<ConcatOp>(
        SmallVector<Value>{
            weightOfSteps(builder, blocksOf(builder, gates, hidden, 0, 2), before),
            weightOfSteps(builder, ofCandidates(), linear ? before : Value(getCandidates()))},
        int64_t(0));
  if (needed[2])
    operandGradients[2] =
        builder.create<ConcatOp>(SmallVector<Value>{builder.reduceSum(gates, {0, 1}),
                                                    builder.reduceSum(ofCandidates(), {0, 1})},
                                 int64_t(0));
  operandGradients[3] = op.getDh();
  return success();
}

double GruOp::flops() { return recurrenceFlops(sizesOf(*this), kGruBlocks); }

SmallVector<Replacement> GruOp::lowerToStep(StepBuilder &builder) {
  return lowerRecurrence(builder, *this, cellFunctions(*this), getReverse(),
                         {"gru",
                          "gru",
                          kGruBlocks,
                          sizesOf(*this),
                          bool(getLinearBeforeReset()),
                          {-1, 0, -1},
                          {"states", "gates", "candidates"}});
}

FailureOr<SmallVector<Tensor>> GruOp::interpretResults(ArrayRef<Tensor> operands) {
  recurrence_sizes sizes = sizesOf(*this);
  int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  bool linear = getLinearBeforeReset();
  std::vector<double> gates = operands[0].reals(), r = operands[1].reals(),
                      bias = operands[2].reals(), h = operands[3].reals();
  std::vector<int64_t> lengths = operands[4].integers();
  std::vector<double> states((sizes.steps + 1) * state), candidates(sizes.steps * state);
  llvm::copy(h, states.begin() + place_of(sizes, getReverse(), 0).before * state);
  InterpretedGru cell = gruCellOf(*this);
  for (int64_t step = 0; step < sizes.steps; ++step) {
    step_place place = place_of(sizes, getReverse(), step);
    auto before = [&](int64_t sequence) {
      return ArrayRef(states).slice(place.before * state + sequence * hidden, hidden);
    };
    forEachCell(sizes, lengths, place.at, [&](int64_t sequence, int64_t j, bool active) {
      GruGates own(gates, sizes, place.at, sequence, j);
      double &candidate = candidates[place.at * state + sequence * hidden + j];
      if (!active)
        return void(own.z = own.r = candidate = 0);
      own.z = cell.gate.value(own.z + bias[j] + productOfRow(r, j, before(sequence)));
      own.r =
          cell.gate.value(own.r + bias[hidden + j] + productOfRow(r, hidden + j, before(sequence)));
      candidate = linear ? productOfRow(r, 2 * hidden + j, before(sequence)) + bias[3 * hidden + j]
                         : own.r * before(sequence)[j];
    });
    forEachCell(sizes, lengths, place.at, [&](int64_t sequence, int64_t j, bool active) {
      GruGates own(gates, sizes, place.at, sequence, j);
      auto met = ArrayRef(candidates).slice(place.at * state + sequence * hidden, hidden);
      double ofState =
          linear ? own.r * met[j] : productOfRow(r, 2 * hidden + j, met) + bias[3 * hidden + j];
      own.n = active ? cell.candidate.value(own.n + bias[2 * hidden + j] + ofState) : 0;
      states[place.behind * state + sequence * hidden + j] =
          active ? InterpretedGru::mixed(own.z, own.n, before(sequence)[j]) : before(sequence)[j];
    });
  }
  return SmallVector<Tensor>{Tensor::ofReals(getStates().getType(), states),
                             Tensor::ofReals(getActivated().getType(), gates),
                             Tensor::ofReals(getCandidates().getType(), candidates)};
}

// ---- the gradient

LogicalResult GruGradientOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto gates = tensorType(adaptor.getActivated());
  auto sizes = recurrenceSizes(gates, tensorType(adaptor.getR()), kGruBlocks);
  if (failed(sizes)) // gru-c4
    return emitOptionalError(location, "the activated gates and r fit, found ", gates, " and ",
                             adaptor.getR().getType());
  auto [steps, batch, hidden] = *sizes;
  if (failed(checkOperands(location, gates.getElementType(),
                           {{"lengths", adaptor.getLengths(), {batch}},
                            {"states", adaptor.getStates(), {steps + 1, batch, hidden}},
                            {"dstates", adaptor.getDstates(), {steps + 1, batch, hidden}}})) ||
      failed(checkActivations(location, adaptor.getActivations(), adaptor.getAlphas(),
                              adaptor.getBetas(), adaptor.getClip(), 2)))
    return failure();
  ValueRange candidates = adaptor.getCandidates();
  if (candidates.size() != (adaptor.getLinearBeforeReset() ? 1u : 0u))
    return emitOptionalError(location, "candidates are there where the reset is linear, found ",
                             candidates.size());
  types.append({gates, gates.clone({batch, hidden})});
  for (Value candidate : candidates) {
    if (failed(checkOperands(location, gates.getElementType(),
                             {{"candidates", candidate, {steps, batch, hidden}}})))
      return failure();
    types.push_back(candidate.getType());
  }
  return success();
}

double GruGradientOp::flops() { return recurrenceFlops(sizesOf(*this), kGruBlocks); }

SmallVector<Replacement> GruGradientOp::lowerToStep(StepBuilder &builder) {
  bool linear = getLinearBeforeReset();
  RecurrenceCall call{"gru",
                      linear ? "linear_gru_gradient" : "gru_gradient",
                      kGruBlocks,
                      sizesOf(*this),
                      {},
                      {3, -1},
                      {"gates", "h"}};
  if (linear) {
    call.inPlace.push_back(5);
    call.roles.push_back("candidates");
  }
  return lowerRecurrence(builder, *this, cellFunctions(*this), getReverse(), call);
}

FailureOr<SmallVector<Tensor>> GruGradientOp::interpretResults(ArrayRef<Tensor> operands) {
  recurrence_sizes sizes = sizesOf(*this);
  int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  bool linear = getLinearBeforeReset();
  std::vector<double> r = operands[0].reals(), states = operands[2].reals(),
                      gates = operands[3].reals(), dstates = operands[4].reals(), dh(state);
  std::vector<double> candidates = linear ? operands[5].reals() : std::vector<double>();
  std::vector<int64_t> lengths = operands[1].integers();
  InterpretedGru cell = gruCellOf(*this);
  for (int64_t step = sizes.steps - 1; step >= 0; --step) {
    step_place place = place_of(sizes, getReverse(), step);
    // Sums of products with the state that the step began with, and with the reset one.
    std::vector<double> before(state), reset(state);
    auto rowOf = [&](std::vector<double> &all, int64_t sequence) {
      return MutableArrayRef(all).slice(sequence * hidden, hidden);
    };
    forEachCell(sizes, lengths, place.at, [&](int64_t sequence, int64_t j, bool active) {
      int64_t own = sequence * hidden + j;
      GruGates x(gates, sizes, place.at, sequence, j);
      double total = dh[own] + dstates[place.behind * state + own];
      double z = x.z, n = x.n;
      before[own] += active ? total * z : total;
      x.z = active ? cell.of_update(z, n, states[place.before * state + own], total) : 0;
      x.n = active ? cell.of_candidate(z, n, total) : 0;
      addRowOfWeight(rowOf(before, sequence), r, j, x.z);
      if (!linear)
        addRowOfWeight(rowOf(reset, sequence), r, 2 * hidden + j, x.n);
    });
    forEachCell(sizes, lengths, place.at, [&](int64_t sequence, int64_t j, bool active) {
      int64_t own = sequence * hidden + j;
      GruGates x(gates, sizes, place.at, sequence, j);
      double gate = active ? x.r : 0, slope = active ? cell.gate.slope(x.r) : 0;
      if (linear) {
        double &candidate = candidates[place.at * state + own];
        x.r = x.n * candidate * slope;
        candidate = x.n * gate;
        addRowOfWeight(rowOf(before, sequence), r, 2 * hidden + j, candidate);
      } else {
        before[own] += reset[own] * gate;
        x.r = reset[own] * states[place.before * state + own] * slope;
      }
      addRowOfWeight(rowOf(before, sequence), r, hidden + j, x.r);
    });
    dh = before;
  }
  int64_t first = place_of(sizes, getReverse(), 0).before;
  for (int64_t i = 0; i < state; ++i)
    dh[i] += dstates[first * state + i];
  SmallVector<Tensor> results{Tensor::ofReals(getDgates().getType(), gates),
                              Tensor::ofReals(getDh().getType(), dh)};
  if (linear)
    results.push_back(
        Tensor::ofReals(cast<RankedTensorType>(getDcandidates()[0].getType()), candidates));
  return results;
}

static OnnxRegistration gru("GRU", 3, importGru, weightsOfRecurrent);

} // namespace trainc::nn
