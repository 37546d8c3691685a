// SPDX-License-Identifier: Apache-2.0
//
// nn.lstm, its gradient, and ONNX LSTM.
#include "dialects/nn/recurrence.h"

using namespace mlir;

namespace trainc::nn {

namespace {

constexpr int64_t kLstmBlocks = 4; // i, o, f, g

recurrence_sizes sizesOf(LstmOp op) {
  return *recurrenceSizes(op.getGates().getType(), op.getR().getType(), kLstmBlocks);
}
recurrence_sizes sizesOf(LstmGradientOp op) {
  return *recurrenceSizes(op.getActivated().getType(), op.getR().getType(), kLstmBlocks);
}

template <bool coupled>
using InterpretedLstm =
    lstm_cell<double, any_gate<double>, any_gate<double>, any_gate<double>, coupled>;

/// Calls work(cell) with the cell of an operation.
template <typename Op, typename Work> void withLstmCell(Op op, Work work) {
  CellFunctions functions = cellFunctions(op);
  if (op.getCoupled())
    work(InterpretedLstm<true>{functions.boundedGate(0), functions.boundedGate(1),
                               functions.gate(2)});
  else
    work(InterpretedLstm<false>{functions.boundedGate(0), functions.boundedGate(1),
                                functions.gate(2)});
}

/// Where an element's gates and peepholes are: i, o, f, g.
struct LstmPlaces {
  LstmPlaces(const recurrence_sizes &sizes, int64_t step, int64_t sequence, int64_t j)
      : first((step * sizes.batch + sequence) * kLstmBlocks * sizes.hidden + j),
        hidden(sizes.hidden) {}
  int64_t operator[](int64_t block) const { return first + block * hidden; }
  int64_t first, hidden;
};

lstm_peepholes<double> peepholesOf(ArrayRef<double> all, int64_t hidden, int64_t j) {
  return {all[j], all[hidden + j], all[2 * hidden + j]};
}

} // namespace

// ---- import

static RecurrentResults buildLstm(Builder &builder, const RecurrentDirection &of, bool coupled) {
  int64_t blocks = tensorType(of.r).getDimSize(0);
  Value bias = builder.named("bias", builder.add(builder.slice(of.bias, 0, 0, blocks),
                                                 builder.slice(of.bias, 0, blocks, blocks)));
  auto op = builder.op().create<LstmOp>(builder.location(), of.gates, of.r, bias, of.peepholes,
                                        of.h, of.c, of.lengths, of.activations, of.alphas, of.betas,
                                        APFloat(of.clip), of.reverse, coupled);
  return {op.getStates(), op.getLastCell()};
}

static OnnxResults importLstm(OnnxNode &node) {
  static const StringRef usual[] = {"sigmoid", "tanh", "tanh"};
  int64_t coupled = node.integer("input_forget", 0);
  if (coupled != 0 && coupled != 1)
    return node.error("attribute 'input_forget' is " + llvm::Twine(coupled) + ", expected 0 or 1");
  return importRecurrent(node, {kLstmBlocks, usual, true},
                         [&](Builder &builder, const RecurrentDirection &direction) {
                           return buildLstm(builder, direction, coupled);
                         });
}

// ---- lstm

LogicalResult LstmOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto gates = tensorType(adaptor.getGates());
  auto sizes = recurrenceSizes(gates, tensorType(adaptor.getR()), kLstmBlocks);
  if (failed(sizes)) // lstm-c1
    return emitOptionalError(
        location,
        "gates are steps x sequences x 4 hidden, with a step, and r is 4 hidden "
        "x hidden, found ",
        gates, " and ", adaptor.getR().getType());
  auto [steps, batch, hidden] = *sizes;
  Type element = gates.getElementType();
  if (failed(checkOperands(location, element, // lstm-c2
                           {{"bias", adaptor.getBias(), {kLstmBlocks * hidden}},
                            {"peepholes", adaptor.getPeepholes(), {3 * hidden}},
                            {"h", adaptor.getH(), {batch, hidden}},
                            {"c", adaptor.getC(), {batch, hidden}},
                            {"lengths", adaptor.getLengths(), {batch}}})) ||
      failed(checkActivations(location, adaptor.getActivations(), adaptor.getAlphas(),
                              adaptor.getBetas(), adaptor.getClip(), 3))) // lstm-c3
    return failure();
  Type states = gates.clone({steps + 1, batch, hidden});
  types.append({states, gates.clone({batch, hidden}), states, gates});
  return success();
}

LogicalResult LstmOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                    const llvm::SmallBitVector &needed,
                                    SmallVectorImpl<Value> &operandGradients) {
  if (resultGradients[2] || resultGradients[3])
    return failure(); // of what serves this gradient
  auto orZero = [&](unsigned result) {
    return resultGradients[result] ? resultGradients[result]
                                   : builder.constant(0, getResult(result).getType());
  };
  int64_t hidden = sizesOf(*this).hidden;
  bool reverse = getReverse();
  auto op = builder.op().create<LstmGradientOp>(builder.location(), getR(), getPeepholes(),
                                                getLengths(), getCells(), getActivated(), orZero(0),
                                                orZero(1), getActivations(), getAlphas(),
                                                getBetas(), getClip(), reverse, getCoupled());
  Value gates = op.getDgates();
  operandGradients.assign(7, Value());
  operandGradients[0] = gates;
  if (needed[1])
    operandGradients[1] = weightOfSteps(builder, gates, beforeSteps(builder, getStates(), reverse));
  if (needed[2])
    operandGradients[2] = builder.reduceSum(gates, {0, 1});
  if (needed[3]) {
    SmallVector<Value> parts;
    for (int64_t block : {0, 1, 2}) { // only o sees the new cell
      Value cells = block == 1 ? behindSteps(builder, getCells(), reverse)
                               : beforeSteps(builder, getCells(), reverse);
      parts.push_back(
          builder.reduceSum(builder.mul(blocksOf(builder, gates, hidden, block), cells), {0, 1}));
    }
    operandGradients[3] = builder.create<ConcatOp>(parts, 0);
  }
  operandGradients[4] = op.getDh();
  operandGradients[5] = op.getDc();
  return success();
}

double LstmOp::flops() { return recurrenceFlops(sizesOf(*this), kLstmBlocks); }

SmallVector<Replacement> LstmOp::lowerToStep(StepBuilder &builder) {
  return lowerRecurrence(builder, *this, cellFunctions(*this), getReverse(),
                         {"lstm",
                          "lstm",
                          kLstmBlocks,
                          sizesOf(*this),
                          bool(getCoupled()),
                          {-1, -1, -1, 0},
                          {"states", "last_cell", "cells", "gates"}});
}

FailureOr<SmallVector<Tensor>> LstmOp::interpretResults(ArrayRef<Tensor> operands) {
  recurrence_sizes sizes = sizesOf(*this);
  int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  std::vector<double> gates = operands[0].reals(), r = operands[1].reals(),
                      bias = operands[2].reals(), peepholes = operands[3].reals(),
                      h = operands[4].reals(), c = operands[5].reals();
  std::vector<int64_t> lengths = operands[6].integers();
  std::vector<double> states((sizes.steps + 1) * state), cells((sizes.steps + 1) * state);
  int64_t first = place_of(sizes, getReverse(), 0).before;
  llvm::copy(h, states.begin() + first * state);
  llvm::copy(c, cells.begin() + first * state);
  int64_t end = 0;
  withLstmCell(*this, [&](const auto &cell) {
    for (int64_t step = 0; step < sizes.steps; ++step) {
      step_place place = place_of(sizes, getReverse(), step);
      end = place.behind * state;
      forEachCell(sizes, lengths, place.at, [&](int64_t sequence, int64_t j, bool active) {
        int64_t from = place.before * state + sequence * hidden, to = end + sequence * hidden + j;
        LstmPlaces at(sizes, place.at, sequence, j);
        double x[kLstmBlocks] = {};
        for (int64_t block = 0; block < kLstmBlocks && active; ++block) {
          x[block] = gates[at[block]] + bias[block * hidden + j];
          for (int64_t k = 0; k < hidden; ++k)
            x[block] += states[from + k] * r[(block * hidden + j) * hidden + k];
        }
        lstm_gates<double> all = {x[0], x[1], x[2], x[3]};
        cells[to] = cells[from + j];
        states[to] = active ? cell.step(all, peepholesOf(peepholes, hidden, j), cells[to])
                            : states[from + j];
        double values[] = {all.i, all.o, all.f, all.g};
        for (auto [block, value] : llvm::enumerate(values))
          gates[at[block]] = value;
      });
    }
  });
  std::vector<double> last(cells.begin() + end, cells.begin() + end + state);
  return SmallVector<Tensor>{Tensor::ofReals(getStates().getType(), states),
                             Tensor::ofReals(getLastCell().getType(), last),
                             Tensor::ofReals(getCells().getType(), cells),
                             Tensor::ofReals(getActivated().getType(), gates)};
}

// ---- the gradient

LogicalResult LstmGradientOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto gates = tensorType(adaptor.getActivated());
  auto sizes = recurrenceSizes(gates, tensorType(adaptor.getR()), kLstmBlocks);
  if (failed(sizes)) // lstm-c4
    return emitOptionalError(location, "the activated gates and r fit, found ", gates, " and ",
                             adaptor.getR().getType());
  auto [steps, batch, hidden] = *sizes;
  if (failed(checkOperands(location, gates.getElementType(),
                           {{"peepholes", adaptor.getPeepholes(), {3 * hidden}},
                            {"lengths", adaptor.getLengths(), {batch}},
                            {"cells", adaptor.getCells(), {steps + 1, batch, hidden}},
                            {"dstates", adaptor.getDstates(), {steps + 1, batch, hidden}},
                            {"dlast_cell", adaptor.getDlastCell(), {batch, hidden}}})) ||
      failed(checkActivations(location, adaptor.getActivations(), adaptor.getAlphas(),
                              adaptor.getBetas(), adaptor.getClip(), 3)))
    return failure();
  Type state = gates.clone({batch, hidden});
  types.append({gates, state, state});
  return success();
}

double LstmGradientOp::flops() { return recurrenceFlops(sizesOf(*this), kLstmBlocks); }

SmallVector<Replacement> LstmGradientOp::lowerToStep(StepBuilder &builder) {
  return lowerRecurrence(builder, *this, cellFunctions(*this), getReverse(),
                         {"lstm",
                          "lstm_gradient",
                          kLstmBlocks,
                          sizesOf(*this),
                          bool(getCoupled()),
                          {4, -1, -1},
                          {"gates", "h", "c"}});
}

FailureOr<SmallVector<Tensor>> LstmGradientOp::interpretResults(ArrayRef<Tensor> operands) {
  recurrence_sizes sizes = sizesOf(*this);
  int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  std::vector<double> r = operands[0].reals(), peepholes = operands[1].reals(),
                      cells = operands[3].reals(), gates = operands[4].reals(),
                      dstates = operands[5].reals(), dc = operands[6].reals(), dh(state);
  std::vector<int64_t> lengths = operands[2].integers();
  withLstmCell(*this, [&](const auto &cell) {
    for (int64_t step = sizes.steps - 1; step >= 0; --step) {
      step_place place = place_of(sizes, getReverse(), step);
      std::vector<double> before(state); // the gradient of the state that the step began with
      forEachCell(sizes, lengths, place.at, [&](int64_t sequence, int64_t j, bool active) {
        int64_t own = sequence * hidden + j;
        LstmPlaces at(sizes, place.at, sequence, j);
        double total = dh[own] + dstates[place.behind * state + own];
        if (!active)
          before[own] += total;
        lstm_gates<double> x = {gates[at[0]], gates[at[1]], gates[at[2]], gates[at[3]]};
        if (active)
          cell.gradient(x, peepholesOf(peepholes, hidden, j), cells[place.before * state + own],
                        cells[place.behind * state + own], total, dc[own]);
        double values[] = {x.i, x.o, x.f, x.g};
        for (auto [block, value] : llvm::enumerate(values)) {
          gates[at[block]] = active ? value : 0;
          for (int64_t k = 0; k < hidden; ++k)
            before[sequence * hidden + k] +=
                gates[at[block]] * r[(block * hidden + j) * hidden + k];
        }
      });
      dh = before;
    }
  });
  int64_t first = place_of(sizes, getReverse(), 0).before;
  for (int64_t i = 0; i < state; ++i)
    dh[i] += dstates[first * state + i];
  return SmallVector<Tensor>{Tensor::ofReals(getDgates().getType(), gates),
                             Tensor::ofReals(getDh().getType(), dh),
                             Tensor::ofReals(getDc().getType(), dc)};
}

static OnnxRegistration lstm("LSTM", 1, importLstm, weightsOfRecurrent);

} // namespace trainc::nn
