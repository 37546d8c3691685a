// SPDX-License-Identifier: Apache-2.0
//
// Joins @forward_backward and @update, between which the trainer keeps tensors in flat arenas:
// each run of an arena is put together from its tensors here, and taken apart again. What the
// trainer sets for a step of one micro-batch on one rank is constant.
#include "compiler/onnx/gradient_graph/step_function.h"
#include "dialects/errors/internal_error.h"
#include "dialects/names/unique_names.h"
#include "dialects/nn/builder.h"
#include "dialects/train/module_state.h"
#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace mlir;

namespace trainc {
namespace {

/// A tensor in a flat one.
struct FlatPiece {
  std::string name; // of the parameter, or of its state
  int64_t begin = 0;
  SmallVector<int64_t> shape;
};

class StepJoiner {
public:
  explicit StepJoiner(ModuleOp module)
      : module(module), layout(train::layoutOf(module)),
        optimizer(train::findOptimizer(train::optimizerNameOf(module))),
        forward(module.lookupSymbol<func::FuncOp>("forward_backward")),
        update(module.lookupSymbol<func::FuncOp>("update")), at(module.getContext()) {
    check(layout && optimizer && forward && update, module, "a step has two functions");
  }

  StepFunction run() {
    step.module = ModuleOp::create(module.getLoc());
    at.setInsertionPointToEnd(step.module->getBody());
    step.function = at.create<func::FuncOp>(module.getLoc(), "step", at.getFunctionType({}, {}));
    at.setInsertionPointToStart(step.function.addEntryBlock());
    joinForward();
    joinUpdate();
    at.create<func::ReturnOp>(module.getLoc(), results);
    step.function.setType(
        at.getFunctionType(step.function.front().getArgumentTypes(), TypeRange(results)));
    check(succeeded(verify(*step.module)), module, "the joined step is not valid");
    return std::move(step);
  }

private:
  nn::Builder builderOf(const Twine &name) { return {at, NameLoc::get(at.getStringAttr(name))}; }

  Value constant(double number, Type type) { return builderOf("number").constant(number, type); }

  Value addInput(StringRef name, Type type, std::optional<double> number = std::nullopt) {
    std::string own = inputNames.unique(name);
    step.inputs.push_back({own, number});
    return step.function.front().addArgument(type, NameLoc::get(at.getStringAttr(own)));
  }

  void addOutput(const Twine &name, Value value) {
    step.outputs.push_back(outputNames.unique(name.str()));
    results.push_back(value);
  }

  /// The function's results where its arguments are these values.
  SmallVector<Value> inlined(func::FuncOp function, ArrayRef<Value> arguments) {
    IRMapping mapping;
    mapping.map(function.getArguments(), arguments);
    for (Operation &op : function.front().without_terminator())
      at.clone(op, mapping);
    SmallVector<Value> values;
    for (Value value : function.front().getTerminator()->getOperands())
      values.push_back(mapping.lookup(value));
    return values;
  }

  Value argumentOfForward(unsigned number) {
    train::RoleAttrInterface role = train::roleOf(forward, number);
    Type type = forward.getArgument(number).getType();
    // So gradients are those of the loss.
    if (isa_and_nonnull<train::MeanPerBatchAttr, train::LossScaleAttr>(role))
      return constant(1, type);
    if (isa_and_nonnull<train::BatchFaultAttr>(role))
      return constant(0, type);
    if (auto scale = dyn_cast_or_null<train::PartScaleAttr>(role))
      return partScale(scale.getPart(), type);
    if (isa_and_nonnull<train::RandomKeyAttr>(role))
      return addInput("random_key", type);
    return tensors[train::nameOf(forward, number)];
  }

  /// Of a part of the loss that weighs something: of one micro-batch the reciprocal.
  Value partScale(int64_t part, Type type) {
    auto count = module.lookupSymbol<func::FuncOp>("count_labels");
    if (count && labelCounts.empty()) {
      SmallVector<Value> arguments;
      for (unsigned i = 0; i < count.getNumArguments(); ++i)
        arguments.push_back(tensors[train::nameOf(count, i)]);
      labelCounts = inlined(count, arguments);
    }
    for (unsigned i = 0; count && i < count.getNumResults(); ++i) {
      auto weight = train::resultRoleAs<train::LossWeightAttr>(count, i);
      if (!weight || weight.getPart() != part)
        continue;
      nn::Builder b = builderOf("part_scale_" + Twine(part));
      Value whole = b.cast(labelCounts[i], cast<RankedTensorType>(type).getElementType());
      return b.div(b.constant(1, type), whole);
    }
    return constant(1, type);
  }

  void joinForward() {
    SmallVector<Value> arguments;
    for (unsigned i = 0; i < forward.getNumArguments(); ++i) { // the model's names come first
      train::RoleAttrInterface role = train::roleOf(forward, i);
      if (isa_and_nonnull<train::ParameterAttr, train::BufferAttr, train::InputAttr,
                          train::LabelAttr>(role))
        tensors[role.getName()] = addInput(role.getName(), forward.getArgument(i).getType());
    }
    for (unsigned i = 0; i < forward.getNumArguments(); ++i)
      arguments.push_back(argumentOfForward(i));
    SmallVector<Value> values = inlined(forward, arguments);
    for (auto [i, value] : enumerate(values)) {
      train::RoleAttrInterface role = train::resultRoleOf(forward, i);
      if (isa_and_nonnull<train::LossAttr>(role))
        addOutput("loss", value);
      else if (isa_and_nonnull<train::StepTotalsAttr>(role))
        totals = value;
      else if (isa_and_nonnull<train::GradientAttr, train::NewValueAttr>(role))
        summed[role.getName()] = value;
      if (isa_and_nonnull<train::GradientAttr>(role))
        addOutput("gradient of " + role.getName().getValue(), value);
    }
  }

  /// What lies in the flat tensor of an argument or result of @update.
  SmallVector<FlatPiece> piecesOf(train::RoleAttrInterface role) {
    if (auto parameters = dyn_cast<train::RunParametersAttr>(role))
      return piecesOf(parameters.getRun(), parameters.getGroup(), "");
    if (auto gradients = dyn_cast<train::RunGradientsAttr>(role))
      return piecesOf(gradients.getRun(), gradients.getGroup(), "");
    auto state = cast<train::StateAttr>(role);
    if (!train::stateLayoutOf(module))
      return piecesOf(state.getRun(), state.getGroup(),
                      stateName(optimizer->states[state.getSlot()]));
    SmallVector<FlatPiece> pieces;
    auto [begin, end] = placesOfState(state);
    for (const train::StatePlace &place : train::statePlacesOf(module)) {
      const int64_t offset = place.offset / (place.element.getIntOrFloatBitWidth() / 8);
      if (offset >= begin && offset < end)
        pieces.push_back(
            {stateName(place.name) + place.parameter.str(), offset - begin, place.shape});
    }
    return pieces;
  }

  SmallVector<FlatPiece> piecesOf(train::Run run, int64_t group, const std::string &prefix) {
    SmallVector<FlatPiece> pieces;
    for (train::PlacedAttr placed : layout.placed())
      if (placed.getRun() == run && placed.getGroup() == group)
        pieces.push_back(
            {prefix + placed.getName().str(), placed.getOffset() - layout.offsetOf(run, group),
             SmallVector<int64_t>(nn::tensorType(tensors.lookup(placed.getName())).getShape())});
    return pieces;
  }

  /// As a checkpoint calls it, with the name of the parameter behind.
  static std::string stateName(StringRef name) { return ("optimizer/" + name + "/").str(); }

  /// Where the state lies among all states: slot by slot, and in these by runs.
  std::pair<int64_t, int64_t> placesOfState(train::StateAttr state) {
    int64_t offset = 0;
    for (size_t slot = 0; slot < optimizer->states.size(); ++slot)
      for (unsigned i = 0; i < update.getNumArguments(); ++i) {
        auto other = train::roleAs<train::StateAttr>(update, i);
        if (!other || other.getSlot() != static_cast<int64_t>(slot))
          continue;
        int64_t end = offset + nn::tensorType(update.getArgument(i)).getNumElements();
        if (other == state)
          return {offset, end};
        offset = end;
      }
    check(false, module, "a state of the update lies nowhere");
    return {};
  }

  /// What names of the pieces' computation say.
  std::string titleOf(train::RoleAttrInterface role) {
    auto title = [](auto part, StringRef what) {
      std::string group = part.getGroup() ? "_" + std::to_string(part.getGroup()) : "";
      return (train::stringifyRun(part.getRun()) + "_" + what + group).str();
    };
    if (auto parameters = dyn_cast<train::RunParametersAttr>(role))
      return title(parameters, "parameters");
    if (auto gradients = dyn_cast<train::RunGradientsAttr>(role))
      return title(gradients, "gradients");
    auto state = cast<train::StateAttr>(role);
    return title(state, optimizer->states[state.getSlot()]);
  }

  Value packed(train::RoleAttrInterface role, RankedTensorType type, StringMap<Value> &values) {
    nn::Builder b = builderOf(titleOf(role));
    SmallVector<Value> parts;
    int64_t filled = 0;
    auto pad = [&](int64_t end) {
      if (end > filled)
        parts.push_back(b.constant(0, type.clone(ArrayRef<int64_t>(end - filled))));
    };
    for (const FlatPiece &piece : piecesOf(role)) {
      pad(piece.begin);
      Value value = values.lookup(piece.name);
      check(value != nullptr, module, Twine("nothing is known of '") + piece.name + "'");
      int64_t count = nn::tensorType(value).getNumElements();
      parts.push_back(b.reshape(value, {count}));
      filled = piece.begin + count;
    }
    pad(type.getNumElements());
    return parts.size() == 1 ? parts.front()
                             : b.create<nn::ConcatOp>(type, ValueRange(parts), int64_t(0));
  }

  Value argumentOfUpdate(unsigned number) {
    train::RoleAttrInterface role = train::roleOf(update, number);
    RankedTensorType type = nn::tensorType(update.getArgument(number));
    if (isa<train::RunParametersAttr>(role))
      return packed(role, type, tensors);
    if (isa<train::RunGradientsAttr>(role))
      return packed(role, type, summed);
    if (isa<train::StateAttr>(role)) {
      for (const FlatPiece &piece : piecesOf(role))
        tensors[piece.name] = addInput(piece.name, type.clone(piece.shape));
      return packed(role, type, tensors);
    }
    if (isa<train::StepTotalsAttr>(role))
      return totals;
    if (isa<train::LossScaleAttr>(role))
      return constant(1, type);
    StringRef name = cast<train::ScalarAttr>(role).getName().getValue();
    if (name == "gradient_scale") // one over the number of micro-batches
      return constant(1, type);
    return addInput(name, type, numberOf(name));
  }

  std::optional<double> numberOf(StringRef scalar) {
    if (scalar == "step")
      return 1; // the first update
    if (is_contained({"clip_norm", "clip_value", "loss_limit"}, scalar))
      return INFINITY;
    for (const train::Hyperparameter &each : train::hyperparametersOf(*optimizer, module))
      if (each.name == scalar && each.follows.empty())
        return each.defaultValue;
    return std::nullopt;
  }

  void joinUpdate() {
    SmallVector<Value> arguments;
    for (unsigned i = 0; i < update.getNumArguments(); ++i)
      arguments.push_back(argumentOfUpdate(i));
    SmallVector<Value> values = inlined(update, arguments);
    for (auto [i, value] : enumerate(values)) {
      train::RoleAttrInterface role = train::resultRoleOf(update, i);
      if (isa<train::GradientNormAttr>(role)) {
        addOutput("gradient_norm", value);
        continue;
      }
      nn::Builder b = builderOf("updated_" + titleOf(role));
      for (const FlatPiece &piece : piecesOf(role)) {
        int64_t count = *nn::elementCount(piece.shape);
        Value part = b.slice(value, 0, piece.begin, count);
        addOutput("updated " + piece.name, b.reshape(part, piece.shape));
      }
    }
  }

  ModuleOp module;
  train::LayoutAttr layout;
  const train::Optimizer *optimizer;
  func::FuncOp forward, update;
  OpBuilder at;
  StepFunction step;
  UniqueNames inputNames, outputNames;
  StringMap<Value> tensors; // inputs by name
  StringMap<Value> summed;  // gradients, and what becomes of buffers, by parameter and buffer
  SmallVector<Value> results, labelCounts;
  Value totals;
};

} // namespace

StepFunction joinStep(ModuleOp module) { return StepJoiner(module).run(); }

} // namespace trainc
