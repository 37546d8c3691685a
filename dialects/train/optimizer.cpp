// SPDX-License-Identifier: Apache-2.0
//
// The registry of optimizers.
#include "dialects/train/optimizer.h"
#include "dialects/train/module_state.h"
#include "dialects/train/narrow_states.h"
#include "dialects/train/parameter_average.h"
#include "dialects/train/train.h"
#include "llvm/Support/Format.h"
#include <map>

using namespace mlir;

namespace trainc::train {

namespace {
std::map<std::string, Optimizer> &optimizers() {
  static std::map<std::string, Optimizer> registered;
  return registered;
}

/// The trainer's option: underscores are dashes there (runtime/options/trainer_table.cpp).
std::string optionOf(const Hyperparameter &hyperparameter) {
  std::string name = "--" + hyperparameter.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string describe(const Hyperparameter &hyperparameter) {
  std::string text = hyperparameter.help;
  llvm::raw_string_ostream(text) << llvm::format(" (default %g)", hyperparameter.defaultValue);
  return text;
}
} // namespace

Type elementTypeOf(StateElement element, Type ofParameter) {
  Builder types(ofParameter.getContext());
  switch (element) {
  case StateElement::ofParameter:
    return ofParameter;
  case StateElement::bf16:
    return types.getBF16Type();
  case StateElement::i8:
    return types.getIntegerType(8);
  case StateElement::ui8:
    return types.getIntegerType(8, /*isSigned=*/false);
  }
  llvm_unreachable("an element that is not in the list");
}

Value Update::spread(Value f64Scalar) const {
  RankedTensorType type = nn::tensorType(parameter);
  std::string role = nodeName(f64Scalar.getLoc()).role;
  for (auto &entry : scalars)
    if (entry.getValue() == f64Scalar)
      role = entry.getKey().str() + "_rounded";
  Value scalar = s.cast(f64Scalar, type.getElementType());
  return b.broadcast(role.empty() ? scalar : s.named(role, scalar), {}, type.getShape());
}

Value Update::penalizedGradient() const {
  if (!decays)
    return gradient;
  Value decay = spread(scalar("weight_decay")), penalty = b.mul(parameter, decay);
  if (infiniteParametersOf(penalty.getParentRegion()->getParentOfType<ModuleOp>())) {
    // As PyTorch, which adds no penalty of 0: 0 times -infinity is not a number.
    Value zero = b.constant(0, penalty.getType());
    penalty = b.select(b.create<nn::EqualOp>(decay, zero), zero, penalty);
  }
  return b.named("decaying_gradient", b.add(gradient, penalty));
}

Value Update::partTable(StringRef name, ArrayRef<int64_t> numbers, int64_t columns) const {
  auto type = RankedTensorType::get({static_cast<int64_t>(numbers.size()) / columns, columns},
                                    b.op().getIntegerType(64));
  return b.named(name, b.constant(DenseElementsAttr::get(type, numbers)));
}

Value Update::segmentTable() const {
  SmallVector<int64_t> bounds;
  for (const UpdatedParameter &each : parameters)
    bounds.append({each.begin, each.end});
  return partTable("segments", bounds, 2);
}

Value Update::numberPerParameter(
    llvm::function_ref<double(const UpdatedParameter &)> number) const {
  SmallVector<double> numbers;
  for (const UpdatedParameter &each : parameters)
    numbers.push_back(number(each));
  auto type = RankedTensorType::get({static_cast<int64_t>(numbers.size())}, s.op().getF64Type());
  return s.constant(DenseElementsAttr::get(type, llvm::ArrayRef(numbers)));
}

Value Update::repeatPerParameter(Value f64Scalar) const {
  return s.broadcast(f64Scalar, {}, {static_cast<int64_t>(parameters.size())});
}

SmallVector<Value> Update::call(StringRef function, StringRef library, ArrayRef<Attribute> numbers,
                                ValueRange inputs, ArrayRef<Type> results, double flops) {
  OpBuilder &builder = b.op();
  auto call = builder.create<nn::CustomOp>(
      b.location(), TypeRange(results), inputs, builder.getStringAttr(function),
      builder.getStringAttr(library), builder.getArrayAttr(numbers), builder.getF64FloatAttr(flops),
      builder.getArrayAttr({}));
  return call.getOuts();
}

// runtime/kernels/segments.h says what the tables are.
Value Update::meanSquares(Value flat, ArrayRef<int64_t> table, int64_t elements) {
  constexpr int64_t columns = 7;
  RankedTensorType type = nn::tensorType(flat);
  Value rows = partTable("parts", table, columns);
  auto number = [&](int64_t value) -> Attribute { return b.op().getI64IntegerAttr(value); };
  return call("segment_mean_squares", "segments",
              {number(static_cast<int64_t>(table.size()) / columns), number(type.getNumElements()),
               number(elements)},
              {flat, rows}, type.clone(ArrayRef(elements)),
              2.0 * static_cast<double>(type.getNumElements()))
      .front();
}

Value Update::multiplyRows(Value row, Value column, Value least, ArrayRef<int64_t> table) {
  constexpr int64_t columns = 6;
  RankedTensorType type = nn::tensorType(parameter);
  Value rows = partTable("factored_parts", table, columns);
  auto number = [&](int64_t value) -> Attribute { return b.op().getI64IntegerAttr(value); };
  return call("segment_product", "segments",
              {number(static_cast<int64_t>(table.size()) / columns),
               number(nn::tensorType(row).getNumElements()),
               number(nn::tensorType(column).getNumElements()), number(type.getNumElements())},
              {row, column, least, rows}, type, 2.0 * static_cast<double>(type.getNumElements()))
      .front();
}

Value Update::normPerParameter(Value flat) const {
  return b.create<nn::SegmentNormsOp>(flat, segmentTable());
}

Value Update::spreadPerParameter(Value f64Numbers) const {
  RankedTensorType type = nn::tensorType(parameter);
  Value rounded = s.cast(f64Numbers, type.getElementType());
  return b.create<nn::SegmentBroadcastOp>(rounded, segmentTable(),
                                          static_cast<uint64_t>(type.getNumElements()));
}

std::vector<Hyperparameter> hyperparametersOf(const Optimizer &optimizer, ModuleOp module) {
  std::vector<Hyperparameter> all = optimizer.hyperparameters;
  SmallVector<StringRef> groups = groupsOf(module);
  LayoutAttr layout = layoutOf(module);
  auto follow = [&](Hyperparameter own, int64_t group) {
    const std::string name = own.follows = own.name;
    own.name += ofGroup(module, group);
    own.defaultValue = 0;
    own.help = "--" + name + " of the parameters in the group " + groups[group - 1].str();
    std::replace(own.help.begin(), own.help.end(), '_', '-');
    all.push_back(own);
  };
  for (int64_t group = 1; layout && group < layout.groups(); ++group) {
    const int64_t decayed = layout.elementsOf(Run::decayed, group);
    if (decayed + layout.elementsOf(Run::undecayed, group) > 0)
      follow({"learning_rate", 0, ""}, group);
    for (const Hyperparameter &parameter : optimizer.hyperparameters)
      if (decayed > 0 && parameter.name == "weight_decay")
        follow(parameter, group);
  }
  return all;
}

OptimizerRegistration::OptimizerRegistration(Optimizer optimizer) {
  optimizers().emplace(optimizer.name, std::move(optimizer));
}

const Optimizer *findOptimizer(StringRef name) {
  auto found = optimizers().find(name.str());
  if (found != optimizers().end())
    return &found->second;
  static std::map<std::string, Optimizer> derived; // made when they are asked for
  if (auto known = derived.find(name.str()); known != derived.end())
    return &known->second;
  for (StringRef ending : {kWithAverage, kWithBf16States, kWith8BitStates}) {
    StringRef rest = name;
    const Optimizer *own = rest.consume_back(ending) ? findOptimizer(rest) : nullptr;
    // Narrow states come first, and once.
    const bool mayNarrow = own && !own->squares.empty() && own->kinds.empty() &&
                           own->squares.size() == own->states.size();
    if (!own || (ending != kWithAverage && !mayNarrow))
      continue;
    return &derived
                .emplace(name.str(), ending == kWithAverage      ? withParameterAverage(*own)
                                     : ending == kWithBf16States ? withBf16States(*own)
                                                                 : with8BitStates(*own))
                .first->second;
  }
  return nullptr;
}

StringRef ownNameOf(StringRef name) { return name.split('+').first; }

std::vector<std::string> listNarrowableOptimizers() {
  std::vector<std::string> names;
  for (auto &[name, optimizer] : optimizers())
    if (!optimizer.squares.empty())
      names.push_back(name);
  return names;
}

std::vector<std::string> listOptimizers() {
  std::vector<std::string> names;
  for (auto &entry : optimizers())
    names.push_back(entry.first);
  return names;
}

std::string optimizerHelp() {
  std::string text = "\nOptimizers and their options of the trainer:\n";
  for (auto &[name, optimizer] : optimizers()) {
    text += "  " + name + ": " + optimizer.summary + "\n";
    for (const Hyperparameter &each : optimizer.hyperparameters)
      text += "    " + optionOf(each) + ": " + describe(each) + "\n";
  }
  return text;
}

std::string optimizerDocumentation() {
  std::string text = "| optimizer | option of the trainer | meaning |\n|---|---|---|\n";
  for (auto &[name, optimizer] : optimizers()) {
    text += "| `" + name + "` | | " + optimizer.summary + " |\n";
    for (const Hyperparameter &each : optimizer.hyperparameters)
      text += "| | `" + optionOf(each) + "` | " + describe(each) + " |\n";
  }
  return text;
}

} // namespace trainc::train
