// SPDX-License-Identifier: Apache-2.0
//
// The trainer computes recurrent layers by functions of the runtime, whose gradients are written by
// hand. Here the gradients follow from the operations of each step, so that they judge those.
#include "compiler/onnx/gradient_graph/backward_pass.h"
#include "compiler/onnx/gradient_graph/standard_form.h"
#include "dialects/nn/expression.h"
#include "dialects/nn/recurrence.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace trainc {
namespace {

using nn::CellFunctions;

/// The functions of activation_names, in their order.
constexpr const char *kActivations[] = {
    "sigmoid(x)",
    "tanh(x)",
    "relu(x)",
    "alpha * x + beta",
    "select(x < 0, alpha * x, x)",
    "select(x <= alpha, 0, x)",
    "alpha * tanh(beta * x)",
    "maximum(0, minimum(1, alpha * x + beta))",
    "select(x < 0, alpha * expm1(x), x)",
    "softsign(x)",
    "softplus(x)",
};

/// A layer's steps. `Op` is of nn.lstm, nn.gru or nn.rnn.
template <typename Op> class RecurrentSteps {
public:
  explicit RecurrentSteps(Op op)
      : op(op), at(op), b(at, withoutRole(op->getLoc())), functions(nn::cellFunctions(op)) {
    RankedTensorType gatesType = nn::tensorType(op.getGates());
    ArrayRef<int64_t> gates = gatesType.getShape();
    sizes = {gates[0], gates[1], op.getR().getType().getDimSize(1)};
    stateType = gatesType.clone({sizes.batch, sizes.hidden});
  }

  void run() {
    states.assign(sizes.steps + 1, Value());
    cells = states;
    inputs.assign(sizes.steps, Value());
    met = activated = inputs;
    for (int64_t step = 0; step < sizes.steps; ++step)
      inputs[step] = b.reshape(b.slice(op.getGates(), 0, step, 1),
                               {sizes.batch, nn::tensorType(op.getGates()).getDimSize(2)});
    int64_t first = place(0).before;
    states[first] = leaf(op.getH());
    if constexpr (std::is_same_v<Op, nn::LstmOp>)
      cells[first] = leaf(op.getC());
    Operation *before = inputs.back().getDefiningOp();
    for (int64_t step = 0; step < sizes.steps; ++step)
      addStep(place(step));
    for (Operation *each = before->getNextNode(); each != op; each = each->getNextNode())
      operations.push_back(each);
    replace();
  }

private:
  step_place place(int64_t step) { return place_of(sizes, op.getReverse(), step); }

  /// A value that nothing else is, so that a gradient is that of the initial state alone.
  Value leaf(Value x) { return b.create<nn::DetachOp>(x); }

  Value block(Value gates, int64_t number, int64_t count = 1) {
    return nn::blocksOf(b, gates, sizes.hidden, number, count);
  }
  Value spread(Value row) { return b.broadcastTo(row, stateType.getShape()); }
  Value number(double value) { return b.constant(value, stateType); }

  Value gate(size_t which, Value x, bool isBounded = true) {
    llvm::StringMap<Value> names;
    names["clip"] = number(functions.clip);
    names["x"] = x;
    if (isBounded && functions.clip > 0)
      names["x"] = nn::buildExpression(
          b, nn::parseExpression("select(x < -clip, -clip, select(x > clip, clip, x))"), names);
    names["alpha"] = number(functions.alphas[which]);
    names["beta"] = number(functions.betas[which]);
    return nn::buildExpression(b, nn::parseExpression(kActivations[functions.kinds[which]]), names);
  }

  /// Where the sequence has the step; null where all have.
  Value taking(int64_t step) {
    DenseIntElementsAttr known;
    if (matchPattern(Value(op.getLengths()), m_Constant(&known)) &&
        llvm::all_of(known.getValues<APInt>(),
                     [&](const APInt &length) { return length.getSExtValue() >= sizes.steps; }))
      return nullptr;
    Value lengths = op.getLengths();
    Value takes =
        b.create<nn::GreaterOp>(lengths, b.constant(static_cast<double>(step), lengths.getType()));
    return b.broadcast(takes, {0}, stateType.getShape());
  }
  Value chosen(Value takes, Value now, Value before) {
    return takes ? b.select(takes, now, before) : now;
  }

  Value weight(int64_t first, int64_t count) {
    return b.slice(op.getR(), 0, first * sizes.hidden, count * sizes.hidden);
  }
  Value bias(int64_t first, int64_t count) {
    return b.slice(op.getBias(), 0, first * sizes.hidden, count * sizes.hidden);
  }
  /// What the step finds in the blocks: input, bias and the product with a state.
  Value blocks(int64_t step, Value state, int64_t first, int64_t count) {
    Value x = block(inputs[step], first, count);
    Value shifted = b.add(x, b.broadcastTo(bias(first, count), nn::tensorType(x).getShape()));
    return b.add(shifted, b.matmul(state, weight(first, count), false, true));
  }

  void addStep(step_place place) {
    if constexpr (std::is_same_v<Op, nn::LstmOp>)
      addLstmStep(place);
    else if constexpr (std::is_same_v<Op, nn::GruOp>)
      addGruStep(place);
    else {
      Value now = gate(0, blocks(place.at, states[place.before], 0, 1));
      states[place.behind] = chosen(taking(place.at), now, states[place.before]);
    }
  }

  void addLstmStep(step_place place) {
    Value h = states[place.before], c = cells[place.before], all = blocks(place.at, h, 0, 4);
    auto seen = [&](int64_t number, int64_t peephole, Value cell) { // in the order i, o, f
      Value weights = b.slice(op.getPeepholes(), 0, peephole * sizes.hidden, sizes.hidden);
      Value x = block(all, number);
      return matchPattern(Value(op.getPeepholes()), m_AnyZeroFloat())
                 ? x
                 : b.add(x, b.mul(spread(weights), cell));
    };
    Value i = gate(0, seen(0, 0, c));
    Value f = op.getCoupled() ? b.sub(number(1), i) : gate(0, seen(2, 2, c));
    Value g = gate(1, block(all, 3));
    Value cell = b.add(b.mul(f, c), b.mul(i, g));
    Value o = gate(0, seen(1, 1, cell));
    Value state = b.mul(o, gate(2, cell, /*isBounded=*/false));
    Value takes = taking(place.at);
    states[place.behind] = chosen(takes, state, h);
    cells[place.behind] = chosen(takes, cell, c);
    activated[place.at] = b.create<nn::ConcatOp>(SmallVector<Value>{i, o, f, g}, int64_t(1));
  }

  void addGruStep(step_place place) {
    Value h = states[place.before], both = blocks(place.at, h, 0, 2);
    Value z = gate(0, block(both, 0)), r = gate(0, block(both, 1)), candidate, ofState;
    auto product = [&](Value state) {
      return b.add(b.matmul(state, weight(2, 1), false, true), spread(bias(3, 1)));
    };
    bool isLinear = false;
    if constexpr (std::is_same_v<Op, nn::GruOp>)
      isLinear = op.getLinearBeforeReset();
    candidate = isLinear ? product(h) : b.mul(r, h);
    ofState = isLinear ? b.mul(r, candidate) : product(candidate);
    Value x = b.add(block(inputs[place.at], 2), spread(bias(2, 1)));
    Value n = gate(1, b.add(x, ofState));
    Value now = b.add(b.mul(b.sub(number(1), z), n), b.mul(z, h));
    Value takes = taking(place.at);
    states[place.behind] = chosen(takes, now, h);
    met[place.at] = chosen(takes, candidate, number(0));
    candidates.push_back(candidate);
    activated[place.at] = b.create<nn::ConcatOp>(SmallVector<Value>{z, r, n}, int64_t(1));
  }

  /// Steps along a new first dimension.
  static Value stacked(nn::Builder &b, ArrayRef<Value> parts) {
    SmallVector<Value> rows;
    for (Value part : parts) {
      SmallVector<int64_t> shape(nn::tensorType(part).getShape());
      shape.insert(shape.begin(), 1);
      rows.push_back(b.reshape(part, shape));
    }
    return rows.size() == 1 ? rows.front() : b.create<nn::ConcatOp>(rows, int64_t(0));
  }

  /// The gradient's operation reads what the layer made for it.
  template <typename Gradient> static Operation *layerOf(Gradient gradient) {
    if constexpr (std::is_same_v<Gradient, nn::RnnGradientOp>)
      return gradient.getStates().getDefiningOp();
    else
      return gradient.getActivated().getDefiningOp();
  }

  template <typename Gradient> void replaceGradients() {
    llvm::SetVector<Operation *> found;
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (auto gradient = dyn_cast<Gradient>(user); gradient && layerOf(gradient) == op)
        found.insert(user);
    for (Operation *each : found)
      replaceGradient(cast<Gradient>(each));
  }

  template <typename Gradient> void replaceGradient(Gradient gradient) {
    OpBuilder here(gradient);
    nn::Builder g(here, gradient->getLoc());
    BackwardPass backward(g);
    for (auto [i, state] : llvm::enumerate(states)) {
      Value part = g.slice(gradient.getDstates(), 0, static_cast<int64_t>(i), 1);
      backward.add(state, g.reshape(part, stateType.getShape()));
    }
    int64_t first = place(0).before, last = place(sizes.steps - 1).behind;
    if constexpr (std::is_same_v<Gradient, nn::LstmGradientOp>)
      backward.add(cells[last], gradient.getDlastCell());
    backward.through(operations);
    auto all = [&](ArrayRef<Value> values) {
      SmallVector<Value> parts;
      for (Value value : values)
        parts.push_back(backward.of(value));
      return stacked(g, parts);
    };
    SmallVector<Value> results{all(inputs), backward.of(states[first])};
    if constexpr (std::is_same_v<Gradient, nn::LstmGradientOp>)
      results.push_back(backward.of(cells[first]));
    if (gradient->getNumResults() > results.size()) { // of a GRU, in the order of steps
      if (op.getReverse())
        std::reverse(candidates.begin(), candidates.end());
      results.push_back(all(candidates));
    }
    gradient->replaceAllUsesWith(results);
    gradient->erase();
  }

  void replace() {
    if constexpr (std::is_same_v<Op, nn::LstmOp>) {
      replaceGradients<nn::LstmGradientOp>();
      op->replaceAllUsesWith(ValueRange{stacked(b, states), cells[place(sizes.steps - 1).behind],
                                        stacked(b, cells), stacked(b, activated)});
    } else if constexpr (std::is_same_v<Op, nn::GruOp>) {
      replaceGradients<nn::GruGradientOp>();
      op->replaceAllUsesWith(
          ValueRange{stacked(b, states), stacked(b, activated), stacked(b, met)});
    } else {
      replaceGradients<nn::RnnGradientOp>();
      op->replaceAllUsesWith(ValueRange{stacked(b, states)});
    }
    op->erase();
  }

  Op op;
  OpBuilder at;
  nn::Builder b;
  CellFunctions functions;
  recurrence_sizes sizes;
  RankedTensorType stateType;
  SmallVector<Value> states, cells;          // as in the operation's results
  SmallVector<Value> inputs, activated, met; // by step
  SmallVector<Value> candidates;             // of a GRU, as they are computed
  SmallVector<Operation *> operations;       // of all steps
};

} // namespace

void writeOutRecurrences(func::FuncOp function) {
  SmallVector<Operation *> layers;
  for (Operation &op : function.front())
    if (isa<nn::LstmOp, nn::GruOp, nn::RnnOp>(op))
      layers.push_back(&op);
  for (Operation *layer : layers) {
    if (auto lstm = dyn_cast<nn::LstmOp>(layer))
      RecurrentSteps(lstm).run();
    else if (auto gru = dyn_cast<nn::GruOp>(layer))
      RecurrentSteps(gru).run();
    else
      RecurrentSteps(cast<nn::RnnOp>(layer)).run();
  }
}

} // namespace trainc
