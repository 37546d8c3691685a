// SPDX-License-Identifier: Apache-2.0
//
// The cases of trainc-check-gradient. The loss of a case is the sum of all its
// floating-point results weighted with fixed pseudo-random numbers.
#include "tools/check_gradient_cases.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace trainc;

std::vector<std::string> trainc::numberSections(StringRef text) {
  std::vector<std::string> sections;
  std::string current;
  bool marked = false;
  auto flush = [&] {
    if (marked)
      sections.push_back(current);
    current.clear();
    marked = false;
  };
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    if (line.starts_with("// -----"))
      flush();
    marked |= line.trim() == "// NUMBERS";
    current += line.str() + "\n";
    text = rest;
  }
  flush();
  return sections;
}

constexpr unsigned kMantissaBits = 53; // that differences need

/// Arguments that reach a floating-point result through differentiable operations alone.
static llvm::DenseSet<Value> differentiableArguments(func::FuncOp function) {
  llvm::DenseSet<Value> reaching;
  Block &block = function.getBody().front();
  for (Value value : block.getTerminator()->getOperands())
    if (isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()))
      reaching.insert(value);
  for (Operation &op : llvm::reverse(block)) {
    if (!isa<nn::DifferentiableOpInterface>(op) ||
        llvm::none_of(op.getResults(), [&](Value value) { return reaching.contains(value); }))
      continue;
    for (Value operand : op.getOperands())
      if (auto type =
              dyn_cast<FloatType>(cast<RankedTensorType>(operand.getType()).getElementType());
          type && type.getFPMantissaWidth() >= kMantissaBits)
        reaching.insert(operand);
  }
  return reaching;
}

/// sum over results of weight * result, as f64; without weights where nothing is differentiated.
static Value buildLoss(OpBuilder &at, ValueRange results, bool differentiated) {
  nn::Builder builder(at, NameLoc::get(at.getStringAttr("loss")));
  Value loss;
  uint64_t state = 1;
  for (Value result : results) {
    auto type = cast<RankedTensorType>(result.getType());
    if (!isa<FloatType>(type.getElementType()))
      continue;
    auto wide = RankedTensorType::get(type.getShape(), at.getF64Type());
    std::vector<double> weights;
    for (int64_t i = 0; differentiated && i < type.getNumElements(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      weights.push_back(0.5 + static_cast<double>(state >> 40) / (1 << 24));
    }
    Value weighted = builder.cast(result, at.getF64Type());
    if (differentiated)
      weighted =
          builder.mul(weighted, builder.constant(DenseElementsAttr::get(wide, ArrayRef(weights))));
    SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    if (!all.empty())
      weighted = builder.reduceSum(weighted, all);
    loss = loss ? builder.add(loss, weighted) : weighted;
  }
  return loss ? loss : builder.constant(0, RankedTensorType::get({}, at.getF64Type()));
}

/// A module with @model: parameters, inputs -> loss, outputs.
static OwningOpRef<ModuleOp> buildModel(func::FuncOp function, const CheckCase &check) {
  MLIRContext *context = function.getContext();
  OpBuilder builder(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  builder.setInsertionPointToEnd(module->getBody());
  auto model = cast<func::FuncOp>(builder.clone(*function));
  model.setName("model");
  model->removeAttr("check.inputs");
  model->removeAttr("check.results");
  Operation *end = model.getBody().front().getTerminator();
  SmallVector<Value> results(end->getOperands());
  builder.setInsertionPoint(end);
  auto reaching = differentiableArguments(function);
  results.insert(results.begin(), buildLoss(builder, end->getOperands(), !reaching.empty()));
  end->setOperands(results);
  model.setFunctionType(
      builder.getFunctionType(model.getArgumentTypes(), ValueRange(results).getTypes()));

  for (auto [i, argument] : llvm::enumerate(check.arguments)) {
    StringAttr name = builder.getStringAttr(argument.value.name);
    train::RoleAttrInterface role = train::InputAttr::get(context, name, {}, {}, {});
    if (reaching.contains(function.getArgument(i)))
      role = train::ParameterAttr::get(context, name, train::Run::undecayed, {}, 0);
    train::setRole(model, i, role);
  }
  train::setResultRole(model, 0, train::LossAttr::get(context));
  for (auto [i, result] : llvm::enumerate(check.results))
    train::setResultRole(model, i + 1,
                         train::OutputAttr::get(context, builder.getStringAttr(result.name)));
  return module;
}

static LogicalResult runPasses(ModuleOp module, bool forwardOnly) {
  PassManager manager(module.getContext());
  manager.enableVerifier(true);
  manager.addPass(createDeriveEvaluatePass(forwardOnly));
  if (!forwardOnly) {
    manager.addPass(createDifferentiatePass());
    manager.addPass(createFormBucketsPass());
  }
  manager.addPass(createDecomposePass());
  manager.addPass(createFormProductsPass());
  manager.addPass(createFusePass());
  manager.addPass(createLowerToKernelsPass());
  manager.addPass(createScheduleKernelsPass("cpu"));
  manager.addPass(createOrderOperationsPass());
  manager.addPass(createPlanMemoryPass());
  return manager.run(module);
}

static void readPlace(Attribute attribute, CheckTensor &tensor) {
  auto place = dyn_cast_or_null<kernel::PlaceAttr>(attribute);
  if (!place)
    return;
  tensor.arena = static_cast<int>(place.getArena());
  tensor.offset = place.getOffset();
}

static LogicalResult readPlaces(ModuleOp module, CheckCase &check) {
  auto training = module.lookupSymbol<func::FuncOp>("forward_backward");
  auto evaluation = module.lookupSymbol<func::FuncOp>("evaluate");
  if (!evaluation)
    return module.emitError("derive-evaluate made no @evaluate");
  func::FuncOp any = training ? training : evaluation;
  for (unsigned i = 0; i < any.getNumArguments(); ++i) {
    if (train::roleAs<train::RandomKeyAttr>(any, i))
      readPlace(any.getArgAttr(i, "kernel.place"), check.randomKey);
    for (CheckArgument &argument : check.arguments)
      if (train::nameOf(any, i) == argument.value.name)
        readPlace(any.getArgAttr(i, "kernel.place"), argument.value);
  }
  for (unsigned i = 0; training && i < training.getNumResults(); ++i) {
    if (!train::resultRoleAs<train::GradientAttr>(training, i))
      continue;
    for (CheckArgument &argument : check.arguments)
      if (train::resultNameOf(training, i) == argument.value.name)
        readPlace(training.getResultAttr(i, "kernel.place"), argument.gradient);
  }
  for (unsigned i = 0; i < evaluation.getNumResults(); ++i)
    readPlace(evaluation.getResultAttr(i, "kernel.place"),
              i == 0 ? check.loss : check.results[i - 1]);
  return success();
}

/// Renames the symbols of a case and moves them into `program`.
static LogicalResult merge(ModuleOp module, ModuleOp program, CheckCase &check,
                           std::vector<std::string> &entries) {
  std::string suffix = "_" + std::to_string(entries.size());
  for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (!symbol)
      continue;
    auto function = dyn_cast<func::FuncOp>(op);
    if (function && symbol.getName() != "forward_backward" && symbol.getName() != "evaluate") {
      op.erase();
      continue;
    }
    auto name =
        StringAttr::get(op.getContext(), function ? symbol.getName() + suffix
                                                  : "case" + suffix + "." + symbol.getName());
    if (failed(SymbolTable::replaceAllSymbolUses(&op, name, module)))
      return op.emitError("cannot rename a symbol");
    symbol.setName(name);
  }
  // Cases run one after the other in the same arenas; constants lie side by side.
  SmallVector<int64_t> bytes(6, 0), known(6, 0);
  for (auto [of, list] : {std::pair(program, &known), std::pair(module, &bytes)})
    if (auto planned = of->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes"))
      llvm::copy(planned.asArrayRef().take_front(list->size()), list->begin());
  constexpr auto constants = static_cast<size_t>(kernel::Arena::constants);
  module.walk([&](nn::ConstantOp op) {
    if (auto list = op->getAttrOfType<ArrayAttr>("places")) {
      auto place = cast<kernel::PlaceAttr>(list[0]);
      place = kernel::PlaceAttr::get(op.getContext(), place.getArena(),
                                     place.getOffset() + known[constants]);
      op->setAttr("places", ArrayAttr::get(op.getContext(), place));
    }
  });
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = i == constants ? known[i] + bytes[i] : std::max(known[i], bytes[i]);
  program->setAttr("kernel.arena_bytes", DenseI64ArrayAttr::get(program.getContext(), bytes));
  if (module.lookupSymbol("forward_backward" + suffix)) {
    check.forwardBackward = static_cast<int>(entries.size());
    entries.push_back("forward_backward" + suffix);
  }
  check.evaluate = static_cast<int>(entries.size());
  entries.push_back("evaluate" + suffix);
  program.getBody()->getOperations().splice(program.getBody()->end(),
                                            module.getBody()->getOperations());
  return success();
}

std::optional<CheckCase> trainc::buildCase(func::FuncOp function, ModuleOp program,
                                           std::vector<std::string> &entries, bool forwardOnly) {
  CheckCase check;
  check.name = function.getName().str();
  auto inputs = function->getAttrOfType<ArrayAttr>("check.inputs");
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    CheckArgument argument;
    argument.value = {"argument_" + std::to_string(i), cast<RankedTensorType>(type)};
    argument.gradient = argument.value;
    if (inputs && i < inputs.size())
      argument.given = dyn_cast<DenseElementsAttr>(inputs[i]);
    if (argument.given && argument.given.getType() != type) {
      function.emitError("check.inputs: number ") << i << " is not a " << type;
      return std::nullopt;
    }
    check.arguments.push_back(argument);
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    check.results.push_back({"result_" + std::to_string(i), cast<RankedTensorType>(type)});
  if (auto expected = function->getAttrOfType<ArrayAttr>("check.results"))
    for (auto [i, attribute] : llvm::enumerate(expected)) {
      auto elements = dyn_cast<DenseElementsAttr>(attribute);
      if (!elements || i >= check.results.size() || elements.getType() != check.results[i].type) {
        function.emitError("check.results: number ") << i << " does not have the result's type";
        return std::nullopt;
      }
      check.expected.push_back(elements);
    }
  check.loss.type = RankedTensorType::get({}, Float64Type::get(function.getContext()));
  check.randomKey.type = train::randomKeyType(function.getContext());
  OwningOpRef<ModuleOp> module = buildModel(function, check);
  if (failed(runPasses(*module, forwardOnly)) || failed(readPlaces(*module, check)) ||
      failed(merge(*module, program, check, entries)))
    return std::nullopt;
  return check;
}
