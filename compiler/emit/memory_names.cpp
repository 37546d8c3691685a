// SPDX-License-Identifier: Apache-2.0
//
// Names and places of the tensors of a planned module, and memory.h.
#include "compiler/emit/memory_names.h"
#include "compiler/emit/expressions.h"
#include "dialects/elements/element_type.h"
#include "dialects/names/node_name.h"
#include "dialects/train/train.h"
#include "passes/plans/tensor_places.h"
#include "passes/sharding/gradient_buckets.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace trainc;

static kernel::StoreOp storeInto(kernel::FunctionOp function, unsigned argument) {
  for (Operation *user : function.getBody().getArgument(argument).getUsers())
    if (auto store = dyn_cast<kernel::StoreOp>(user))
      return store;
  return nullptr;
}

/// `per_row` or `per_column` of an output that the walked dimensions do not move.
static StringRef reducedSuffix(kernel::FunctionOp function, unsigned argument) {
  ArrayRef<int64_t> strides =
      cast<kernel::AccessAttr>(function.getAccesses()[argument]).getStrides();
  bool row = function.getForm() == kernel::Form::row;
  if (!row && function.getForm() != kernel::Form::column)
    return "";
  auto walked =
      row ? strides.take_back(function.getReduced()) : strides.take_front(function.getReduced());
  if (!llvm::all_of(walked, [](int64_t stride) { return stride == 0; }))
    return "";
  return row ? "per_row" : "per_column";
}

std::string trainc::outputName(kernel::FunctionOp function, unsigned argument) {
  kernel::StoreOp store = storeInto(function, argument);
  NodeName stored = store ? nodeName(store.getLoc()) : NodeName();
  std::string name = lastParts(stored.value());
  if (!stored.role.empty() || !stored.of.empty())
    return name;
  StringRef suffix = reducedSuffix(function, argument);
  return suffix.empty() || name.empty() || function.getOutputs() == 1 ? name
                                                                      : name + "_" + suffix.str();
}

std::string trainc::typeText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::string text = elementTypeOf(type).name.str();
  if (!tensor)
    return text;
  text += " [";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(tensor.getShape(), stream);
  return text + "]";
}

const PlacedTensor *MemoryNames::find(Value value) const {
  while (auto view = value.getDefiningOp<nn::ReshapeOp>())
    value = view->getOperand(0);
  return places.lookup(value);
}

ArrayRef<const PlacedTensor *> MemoryNames::ofEntry(StringRef entry) const {
  auto it = entryTensors.find(entry);
  return it == entryTensors.end() ? ArrayRef<const PlacedTensor *>() : ArrayRef(it->second);
}

LogicalResult MemoryNames::add(Value value, Attribute place, StringRef name,
                               const std::string &title, bool isShared, NameTable &names) {
  const std::string shortName = withShortGradient(name);
  auto at = dyn_cast_or_null<kernel::PlaceAttr>(place);
  if (!at)
    return emitError(value.getLoc(), "emit: a tensor has no place; run plan-memory first");
  auto type = cast<RankedTensorType>(value.getType());
  std::string key;
  if (isShared) {
    key = (llvm::Twine(static_cast<int>(at.getArena())) + " " + llvm::Twine(at.getOffset()) + " " +
           title)
              .str() +
          typeText(type);
    if (PlacedTensor *known = sharedByKey.lookup(key)) {
      places[value] = known;
      return success();
    }
  }
  tensors.push_back(std::make_unique<PlacedTensor>());
  PlacedTensor *tensor = tensors.back().get();
  *tensor = {names.unique(shortName.empty() ? "result" : shortName), name.str(), title, at, type};
  places[value] = tensor;
  if (isShared) {
    sharedByKey[key] = tensor;
    sharedTensors.push_back(tensor);
  }
  return success();
}

/// Known under one name in all entry functions.
static bool isShared(func::FuncOp function, unsigned argument) {
  train::RoleAttrInterface role = train::roleOf(function, argument);
  return role && llvm::is_contained({train::Placement::parameter, train::Placement::copy,
                                     train::Placement::activations},
                                    role.getPlacement());
}

LogicalResult MemoryNames::addArgument(func::FuncOp function, unsigned index, NameTable &names) {
  Value value = function.getArgument(index);
  Attribute place = function.getArgAttr(index, "kernel.place");
  train::RoleAttrInterface role = train::roleOf(function, index);
  if (std::string run = flatTensorName(module, role); !run.empty())
    return add(value, place, run, run, false, names);
  // What the module calls it says more than a name that an exporter made up.
  StringAttr title = role ? role.getTitle() : StringAttr();
  std::string text = title ? title.str() : "argument_" + std::to_string(index);
  bool shared = isShared(function, index);
  return add(value, place, text, text, shared, shared ? sharedNames : names);
}

/// Equal data has one place and is one table.
LogicalResult MemoryNames::addConstant(nn::ConstantOp op) {
  auto list = op->getAttrOfType<ArrayAttr>("places");
  Attribute place = list && !list.empty() ? list[0] : Attribute();
  PlacedTensor *&tensor = constantByPlace[place];
  if (!tensor) {
    std::string title = nodeName(op.getLoc()).title();
    if (failed(
            add(op.getResult(), place, title.empty() ? "table" : title, title, false, sharedNames)))
      return failure();
    tensor = places.lookup(op.getResult());
    constantOps.push_back(op);
  }
  places[op.getResult()] = tensor;
  return success();
}

/// What the pass that made the step calls the result, else the step's node; of a kernel with
/// several such results with what tells them apart.
std::string MemoryNames::resultName(kernel::StepOpInterface step, unsigned result) {
  auto names = step->getAttrOfType<ArrayAttr>("result_names");
  if (names && !cast<StringAttr>(names[result]).empty() && llvm::count(names, names[result]) == 1)
    return cast<StringAttr>(names[result]).str();
  std::string name = nodeName(step->getLoc()).value();
  FlatSymbolRefAttr kernel = step.calledKernel();
  if (!kernel || step->getNumResults() == 1)
    return name;
  auto function = symbols.lookupNearestSymbolFrom<kernel::FunctionOp>(step, kernel);
  if (!function)
    return name;
  name = nodeName(step->getLoc()).title();
  unsigned argument = function.getBody().getNumArguments() - function.getOutputs() + result;
  StringRef suffix = reducedSuffix(function, argument);
  if (!suffix.empty())
    return name + "_" + suffix.str();
  kernel::StoreOp store = storeInto(function, argument);
  std::string stored = store ? lastParts(nodeName(store.getLoc()).value()) : "";
  return stored.empty() || stored == lastParts(name) ? name : name + "_" + stored;
}

/// Gradients of parameters and the loss are known by what they are, not by the node that made them.
static llvm::DenseMap<Value, std::string> namesByRole(func::FuncOp function) {
  llvm::DenseMap<Value, std::string> resultNames;
  llvm::StringMap<std::string> titles; // of parameters, by ONNX name
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto role = train::roleOf(function, i); role && role.getName())
      titles[role.getName()] = role.getTitle().str();
  for (auto [i, value] :
       llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
    train::RoleAttrInterface role = train::resultRoleOf(function, i);
    while (auto view = value.getDefiningOp<nn::ReshapeOp>())
      value = view->getOperand(0);
    if (isa_and_nonnull<train::GradientAttr>(role))
      resultNames[value] = "gradient of " + titles[role.getName()];
    else if (isa_and_nonnull<train::NewValueAttr>(role))
      resultNames[value] = "new " + titles[role.getName()];
    else if (const std::string name = role ? role.getResultName() : ""; !name.empty())
      resultNames[value] = name;
  }
  return resultNames;
}

/// What the function returns lives to its end; a gradient that the ranks keep in parts only until
/// it is added.
void MemoryNames::holdResults(func::FuncOp function, int end) {
  llvm::DenseMap<unsigned, int> untilAdded;
  for (const GradientBucket &bucket : gradientBucketsOf(function))
    for (unsigned gradient : bucket.gradients)
      untilAdded[gradient] = std::min(bucket.until, end);
  for (auto [i, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands()))
    if (PlacedTensor *tensor = const_cast<PlacedTensor *>(find(value))) {
      auto added = untilAdded.find(i);
      tensor->lastStep =
          std::max(tensor->lastStep, added == untilAdded.end() ? end : added->second);
    }
}

void MemoryNames::listOwn(func::FuncOp function) {
  auto &own = entryTensors[function.getName()];
  llvm::DenseSet<const PlacedTensor *> shared(sharedTensors.begin(), sharedTensors.end());
  auto addOwn = [&](Value value) {
    const PlacedTensor *tensor = places.lookup(value);
    if (tensor && !shared.contains(tensor))
      own.push_back(tensor);
  };
  llvm::for_each(function.getArguments(), addOwn);
  for (auto op : function.getBody().front().getOps<kernel::StepOpInterface>())
    llvm::for_each(op->getResults(), addOwn);
}

LogicalResult MemoryNames::collectEntry(func::FuncOp function) {
  NameTable names = sharedNames;
  bool failed = false;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (!train::roleOf(function, i) || !places.contains(function.getArgument(i)))
      failed |= mlir::failed(addArgument(function, i, names));

  const llvm::DenseMap<Value, std::string> resultNames = namesByRole(function);
  int step = 0; // after the last one: the end of the function
  for (auto op : function.getBody().front().getOps<kernel::StepOpInterface>()) {
    for (Value operand : op->getOperands())
      if (PlacedTensor *tensor = const_cast<PlacedTensor *>(find(operand)))
        tensor->lastStep = step;
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      auto known = resultNames.find(result);
      std::string name = known == resultNames.end() ? resultName(op, i) : known->second;
      std::string title = nodeName(op->getLoc()).title();
      failed |= mlir::failed(add(result, op.resultPlace(i), name, title, false, names));
      if (PlacedTensor *tensor = places.lookup(result))
        tensor->firstStep = tensor->lastStep = step;
    }
    ++step;
  }
  holdResults(function, step);
  listOwn(function);
  return failure(failed);
}

LogicalResult MemoryNames::collect() {
  bool failed = false;
  // Shared names first: they are the same in every entry function.
  for (func::FuncOp function : entryFunctions)
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (isShared(function, i))
        failed |= mlir::failed(addArgument(function, i, sharedNames));
  for (func::FuncOp function : entryFunctions)
    for (auto op : function.getBody().getOps<nn::ConstantOp>())
      failed |= !op->use_empty() && mlir::failed(addConstant(op));
  llvm::sort(constantOps, [&](nn::ConstantOp a, nn::ConstantOp b) {
    return find(a.getResult())->place.getOffset() < find(b.getResult())->place.getOffset();
  });
  for (func::FuncOp function : entryFunctions)
    failed |= mlir::failed(collectEntry(function));
  return failure(failed);
}

// ---- memory.h

static std::string comment(const PlacedTensor &tensor, bool withSteps) {
  const std::string type = typeText(tensor.type);
  std::string text = type.substr(type.find(' ') + 1);
  if (withSteps && tensor.firstStep == PlacedTensor::noStep)
    text += tensor.lastStep == PlacedTensor::noStep
                ? ""
                : ", to step " + std::to_string(tensor.lastStep);
  else if (withSteps && tensor.firstStep == tensor.lastStep)
    text += ", step " + std::to_string(tensor.firstStep);
  else if (withSteps)
    text +=
        ", steps " + std::to_string(tensor.firstStep) + " to " + std::to_string(tensor.lastStep);
  std::string plain = tensor.title; // it may lose its dots
  std::replace(plain.begin(), plain.end(), '.', '_');
  if (!plain.empty() && plain != tensor.name)
    text += ", " + commentText(tensor.title);
  return text;
}

static void list(SourceWriter &writer, ArrayRef<const PlacedTensor *> tensors, bool withSteps,
                 TensorLines &lines) {
  for (const PlacedTensor *tensor : tensors) {
    lines[tensor] = writer.lines() + 1;
    writer.line("constexpr in_" + kernel::stringifyArena(tensor->place.getArena()) + "<" +
                elementType(tensor->type.getElementType()) + "> " + tensor->name + " = " +
                std::to_string(tensor->place.getOffset()) + "; // " + comment(*tensor, withSteps));
  }
}

/// What memory.h begins with: how to read it, and the types of its tensors.
static void beginHeader(ModuleOp module, const MemoryNames &names, SourceWriter &writer) {
  writer.comment(
      "Where every tensor lies: bytes from the base of its arena. Steps are those of the "
      "entry function in the order of step.cpp: from the one that writes the tensor to "
      "the last that reads it (one more than there are: the end of the function); outside "
      "them its place belongs to other tensors.");
  if (auto dense = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes")) {
    writer.line("//");
    for (unsigned i = 0; i < dense.asArrayRef().size(); ++i)
      writer.line("//   " + kernel::stringifyArena(static_cast<kernel::Arena>(i)) + ": " +
                  std::to_string(dense.asArrayRef()[i]) + " bytes");
  }
  writer.line("#pragma once");
  writer.line();
  std::set<StringRef> headers = {"runtime/entry_memory.h"};
  auto add = [&](const PlacedTensor *tensor) {
    headers.insert(elementTypeOf(tensor->type.getElementType()).header);
  };
  llvm::for_each(names.shared(), add);
  for (nn::ConstantOp op : names.constants())
    add(names.find(op.getResult()));
  for (func::FuncOp entry : names.entries())
    llvm::for_each(names.ofEntry(entry.getName()), add);
  for (StringRef header : headers)
    if (!header.empty())
      writer.line("#include \"" + header + "\"");
}

std::string trainc::memoryHeader(ModuleOp module, const MemoryNames &names, TensorLines &lines) {
  SourceWriter writer;
  beginHeader(module, names, writer);
  writer.line();
  writer.openNamespace("trainc::memory");
  writer.line();
  writer.openNamespace("shared");
  writer.line("// Parameters and inputs, the same in every entry function.");
  list(writer, names.shared(), false, lines);
  if (!names.constants().empty()) {
    writer.line();
    writer.line("// Tables of constants.");
    for (nn::ConstantOp op : names.constants())
      list(writer, names.find(op.getResult()), false, lines);
  }
  writer.closeNamespace("shared");
  for (func::FuncOp entry : names.entries()) {
    writer.line();
    writer.openNamespace(entry.getName());
    writer.line("using namespace shared;");
    list(writer, names.ofEntry(entry.getName()), true, lines);
    writer.closeNamespace(entry.getName());
  }
  writer.line();
  writer.closeNamespace("trainc::memory");
  return writer.text();
}
