// SPDX-License-Identifier: Apache-2.0
//
// nn.rnn, its gradient, and ONNX RNN.
#include "dialects/nn/recurrence.h"

using namespace mlir;

namespace trainc::nn {

static recurrence_sizes sizesOf(RnnOp op) {
  return *recurrenceSizes(op.getGates().getType(), op.getR().getType(), 1);
}

static recurrence_sizes sizesOf(RnnGradientOp op) {
  auto states = op.getStates().getType();
  return {states.getDimSize(0) - 1, states.getDimSize(1), states.getDimSize(2)};
}

// ---- import

static RecurrentResults buildRnn(Builder &builder, const RecurrentDirection &of) {
  int64_t hidden = tensorType(of.r).getDimSize(1);
  Value bias = builder.named("bias", builder.add(builder.slice(of.bias, 0, 0, hidden),
                                                 builder.slice(of.bias, 0, hidden, hidden)));
  auto op =
      builder.op().create<RnnOp>(builder.location(), of.gates, of.r, bias, of.h, of.lengths,
                                 of.activations, of.alphas, of.betas, APFloat(of.clip), of.reverse);
  return {op.getStates(), Value()};
}

static OnnxResults importRnn(OnnxNode &node) {
  static const StringRef usual[] = {"tanh"};
  return importRecurrent(node, {1, usual, false}, buildRnn);
}

// ---- rnn

LogicalResult RnnOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                      Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto gates = tensorType(adaptor.getGates());
  auto sizes = recurrenceSizes(gates, tensorType(adaptor.getR()), 1);
  if (failed(sizes)) // rnn-c1
    return emitOptionalError(location,
                             "gates are steps x sequences x hidden, with a step, and r is hidden x "
                             "hidden, found ",
                             gates, " and ", adaptor.getR().getType());
  auto [steps, batch, hidden] = *sizes;
  if (failed(checkOperands(location, gates.getElementType(), // rnn-c2
                           {{"bias", adaptor.getBias(), {hidden}},
                            {"h", adaptor.getH(), {batch, hidden}},
                            {"lengths", adaptor.getLengths(), {batch}}})) ||
      failed(checkActivations(location, adaptor.getActivations(), adaptor.getAlphas(),
                              adaptor.getBetas(), adaptor.getClip(), 1))) // rnn-c3
    return failure();
  types.push_back(gates.clone({steps + 1, batch, hidden}));
  return success();
}

LogicalResult RnnOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                   const llvm::SmallBitVector &needed,
                                   SmallVectorImpl<Value> &operandGradients) {
  auto op = builder.op().create<RnnGradientOp>(builder.location(), getR(), getLengths(),
                                               getStates(), resultGradients[0], getActivations(),
                                               getAlphas(), getBetas(), getClip(), getReverse());
  Value gates = op.getDgates();
  operandGradients.assign(5, Value());
  operandGradients[0] = gates;
  if (needed[1])
    operandGradients[1] =
        weightOfSteps(builder, gates, beforeSteps(builder, getStates(), getReverse()));
  if (needed[2])
    operandGradients[2] = builder.reduceSum(gates, {0, 1});
  operandGradients[3] = op.getDh();
  return success();
}

double RnnOp::flops() { return recurrenceFlops(sizesOf(*this), 1); }

SmallVector<Replacement> RnnOp::lowerToStep(StepBuilder &builder) {
  return lowerRecurrence(builder, *this, cellFunctions(*this), getReverse(),
                         {"rnn", "rnn", 1, sizesOf(*this), {}, {-1}, {"states"}});
}

FailureOr<SmallVector<Tensor>> RnnOp::interpretResults(ArrayRef<Tensor> operands) {
  recurrence_sizes sizes = sizesOf(*this);
  int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  std::vector<double> gates = operands[0].reals(), r = operands[1].reals(),
                      bias = operands[2].reals(), h = operands[3].reals();
  std::vector<int64_t> lengths = operands[4].integers();
  std::vector<double> states((sizes.steps + 1) * state);
  llvm::copy(h, states.begin() + place_of(sizes, getReverse(), 0).before * state);
  auto gate = cellFunctions(*this).boundedGate(0);
  for (int64_t step = 0; step < sizes.steps; ++step) {
    step_place place = place_of(sizes, getReverse(), step);
    forEachCell(sizes, lengths, place.at, [&](int64_t sequence, int64_t j, bool active) {
      int64_t from = place.before * state + sequence * hidden;
      double x = gates[place.at * state + sequence * hidden + j] + bias[j];
      for (int64_t k = 0; k < hidden; ++k)
        x += states[from + k] * r[j * hidden + k];
      states[place.behind * state + sequence * hidden + j] =
          active ? gate.value(x) : states[from + j];
    });
  }
  return SmallVector<Tensor>{Tensor::ofReals(getStates().getType(), states)};
}

// ---- the gradient

LogicalResult RnnGradientOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto states = tensorType(adaptor.getStates());
  if (states.getRank() != 3 || states.getDimSize(0) < 2) // rnn-c4
    return emitOptionalError(location, "states have a step and rank 3, found ", states);
  int64_t batch = states.getDimSize(1), hidden = states.getDimSize(2);
  if (failed(
          checkOperands(location, states.getElementType(),
                        {{"r", adaptor.getR(), {hidden, hidden}},
                         {"lengths", adaptor.getLengths(), {batch}},
                         {"dstates", adaptor.getDstates(), llvm::to_vector(states.getShape())}})) ||
      failed(checkActivations(location, adaptor.getActivations(), adaptor.getAlphas(),
                              adaptor.getBetas(), adaptor.getClip(), 1)))
    return failure();
  types.append(
      {states.clone({states.getDimSize(0) - 1, batch, hidden}), states.clone({batch, hidden})});
  return success();
}

double RnnGradientOp::flops() { return recurrenceFlops(sizesOf(*this), 1); }

SmallVector<Replacement> RnnGradientOp::lowerToStep(StepBuilder &builder) {
  return lowerRecurrence(builder, *this, cellFunctions(*this), getReverse(),
                         {"rnn", "rnn_gradient", 1, sizesOf(*this), {}, {-1, -1}, {"gates", "h"}});
}

FailureOr<SmallVector<Tensor>> RnnGradientOp::interpretResults(ArrayRef<Tensor> operands) {
  recurrence_sizes sizes = sizesOf(*this);
  int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  std::vector<double> r = operands[0].reals(), states = operands[2].reals(),
                      dstates = operands[3].reals(), dh(state), gates(sizes.steps * state);
  std::vector<int64_t> lengths = operands[1].integers();
  auto gate = cellFunctions(*this).boundedGate(0);
  for (int64_t step = sizes.steps - 1; step >= 0; --step) {
    step_place place = place_of(sizes, getReverse(), step);
    std::vector<double> before(state);
    forEachCell(sizes, lengths, place.at, [&](int64_t sequence, int64_t j, bool active) {
      int64_t own = sequence * hidden + j;
      double total = dh[own] + dstates[place.behind * state + own];
      double gradient = total * gate.slope(states[place.behind * state + own]);
      if (!active)
        return void(before[own] += total);
      gates[place.at * state + own] = gradient;
      for (int64_t k = 0; k < hidden; ++k)
        before[sequence * hidden + k] += gradient * r[j * hidden + k];
    });
    dh = before;
  }
  int64_t first = place_of(sizes, getReverse(), 0).before;
  for (int64_t i = 0; i < state; ++i)
    dh[i] += dstates[first * state + i];
  return SmallVector<Tensor>{Tensor::ofReals(getDgates().getType(), gates),
                             Tensor::ofReals(getDh().getType(), dh)};
}

static OnnxRegistration rnn("RNN", 1, importRnn, weightsOfRecurrent);

} // namespace trainc::nn
