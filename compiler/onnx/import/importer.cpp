// SPDX-License-Identifier: Apache-2.0
//
// The walk over the graph. What a node makes of values that are known is evaluated by the
// interpreter at once.
#include "compiler/onnx/import/evaluate.h"
#include "compiler/onnx/import/graph_importer.h"
#include "dialects/errors/internal_error.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/onnx/onnx_types.h"
#include "dialects/nn/reduction.h"
#include "dialects/train/train.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

LogicalResult Importer::fail(const GraphNode &node, const Twine &message, const Twine &advice) {
  const bool advisesExport = batch && advice.isTriviallyEmpty();
  return report.error(ExitCode::unsupportedModel, graph.subject(node), message,
                      advisesExport
                          ? "an export with a symbolic first axis, for --dim in the place "
                            "of --batch"
                          : advice);
}

FailureOr<nn::Tensor> Importer::tensorOfAttribute(const GraphNode &node,
                                                  const onnx::AttributeProto &attribute) {
  std::string why;
  if (auto bytes = file.tensorOfAttribute(attribute, why))
    return tensorOfBytes(context, *bytes, true);
  bool isSupported = elementBytes(attribute.t().data_type()) &&
                     attribute.t().data_location() != onnx::TensorProto::EXTERNAL;
  return report.error(isSupported ? ExitCode::unreadableModel : ExitCode::unsupportedModel,
                      graph.subject(node), "attribute '" + attribute.name() + "' " + why);
}

Value Importer::tensorOf(ImportedValue &value, nn::Builder &at) {
  if (!value.tensor && !value.isSequence)
    value.tensor = at.constant(value.constant.attribute());
  return value.tensor;
}

// What a file joins to each sample (the class token of a vision transformer), it joins to all.
Value Importer::besideSamples(const GraphNode &node, Value input, nn::Builder &at) {
  if (!batch || !node.domain.empty() || node.opType() != "Concat")
    return input;
  for (const std::string &name : node.inputs) {
    Value other = find(name)->tensor;
    auto dimension = other && other != input ? batch->repeated(input, other) : std::nullopt;
    if (!dimension)
      continue;
    SmallVector<int64_t> shape(nn::tensorType(input).getShape());
    shape[*dimension] = nn::tensorType(other).getDimSize(*dimension);
    return at.broadcastTo(input, shape);
  }
  return input;
}

// Input 1 of a node: where that is a shape of the file, the batch's size in it.
nn::Tensor Importer::shapeForBatch(const GraphNode &node, const nn::Tensor &shape) {
  bool reshapes = node.opType() == "Reshape";
  if (!batch || !node.domain.empty() || (!reshapes && node.opType() != "Expand") ||
      find(node.inputs[1])->followsBatch)
    return shape;
  Value x = find(node.inputs[0])->tensor;
  if (!x || !isIndexElement(shape.type().getElementType()))
    return shape;
  if (reshapes)
    return nn::Tensor::ofIntegers(
        shape.type(),
        batch->reshaped(x, shape.integers(), /*zeroCopies=*/node.integer("allowzero", 0) == 0));
  auto sizes = batch->expanded(x, shape.integers());
  repeatsSamples |= !sizes;
  return sizes ? nn::Tensor::ofIntegers(shape.type(), *sizes) : shape;
}

// What nodes compute from sizes has the new batch in it where the sizes have. Elements of sequences
// keep what they have, and so have what is made of them.
void Importer::followSizes(const GraphNode &node) {
  if (!batch || isMadeOfElements(node))
    return;
  bool isSize = node.domain.empty() && (node.opType() == "Shape" || node.opType() == "Size");
  bool follows = llvm::any_of(node.inputs, [&](const std::string &name) {
    ImportedValue *input = name.empty() ? nullptr : find(name);
    return input &&
           (input->followsBatch || (isSize && input->tensor && batch->hasSamples(input->tensor)));
  });
  for (const std::string &name : node.outputs)
    if (ImportedValue *output = name.empty() ? nullptr : find(name); output && !output->isSequence)
      output->followsBatch = follows && output->constant;
}

// An input without elements, such as a decoder's past of length 0, is known.
void Importer::addEmpty(const ModelInput &input) {
  ImportedValue &value = values[input.name];
  value.constant =
      nn::Tensor(RankedTensorType::get(input.shape, nn::onnxElementType(&context, input.dataType)));
  value.followsBatch = input.batchInFile != 0;
}

void Importer::addArguments(ArrayRef<const Parameter *> parameters, ArrayRef<ModelInput> inputs) {
  Block &body = function.front();
  auto add = [&](train::RoleAttrInterface role, ArrayRef<int64_t> shape, int32_t dataType) {
    Type type = RankedTensorType::get(shape, nn::onnxElementType(&context, dataType));
    unsigned index = body.getNumArguments();
    function.insertArgument(index, type, train::attributesOf(role), NameLoc::get(role.getName()));
    values[role.getName().getValue()].tensor = body.getArgument(index);
  };
  for (const Parameter *parameter : parameters) {
    StringAttr name = builder.getStringAttr(parameter->name), module;
    if (!parameter->moduleName.empty() && parameter->moduleName != parameter->name)
      module = builder.getStringAttr(parameter->moduleName);
    if (parameter->role == Role::buffer) {
      add(train::BufferAttr::get(&context, name, module), parameter->shape,
          parameter->quantized ? int32_t{onnx::TensorProto::FLOAT} : parameter->tensor->dataType);
      buffers[name] = values[name].tensor;
      continue;
    }
    train::Run run = parameter->role == Role::frozen ? train::Run::frozen
                     : parameter->decays             ? train::Run::decayed
                                                     : train::Run::undecayed;
    add(train::ParameterAttr::get(&context, name, run, module,
                                  static_cast<int64_t>(parameter->groupNumber)),
        parameter->shape,
        parameter->quantized ? int32_t{onnx::TensorProto::FLOAT} : parameter->tensor->dataType);
    if (parameter->quantized)
      quantized.insert(parameter->name);
  }
  for (const ModelInput &input : inputs) {
    if (is_contained(input.shape, 0)) {
      addEmpty(input);
      continue;
    }
    SmallVector<int64_t> shape = input.shape;
    if (input.batchAxis > 0)
      std::rotate(shape.begin(), shape.begin() + input.batchAxis,
                  shape.begin() + input.batchAxis + 1);
    add(train::InputAttr::get(&context, builder.getStringAttr(input.name), {}, {}, {}), shape,
        input.dataType);
    if (input.batchInFile == 0)
      continue;
    if (!batch)
      batch.emplace(input.batchInFile, shape[0]);
    batch->add(values[input.name].tensor);
  }
  for (const ModelInput &input : inputs)
    if (Value &value = values[input.name].tensor; value && input.batchAxis > 0) {
      nn::Builder at(builder, value.getLoc());
      value = at.move(value, 0, input.batchAxis);
    }
}

void Importer::addConstants(const Parameters &initializers) {
  for (const auto &initializer : initializers) {
    if (initializer->isPartOfQuantized)
      partsOfQuantized.insert(initializer->name);
    if (initializer->role != Role::constant)
      continue;
    const TensorBytes &tensor = *initializer->tensor;
    values[tensor.name].constant = tensorOfBytes(context, tensor, false);
  }
}

// A tied initializer is its parameter, or one transposition of it for all uses.
void Importer::addTied(const Parameters &initializers) {
  for (const auto &initializer : initializers) {
    if (initializer->role != Role::tied)
      continue;
    Value parameter = values[initializer->canonical->name].tensor;
    nn::Builder at(builder, NameLoc::get(builder.getStringAttr(initializer->canonical->name)));
    values[initializer->name].tensor = initializer->transposed
                                           ? at.named("transposed", at.transpose(parameter, {1, 0}))
                                           : parameter;
  }
}

// Whether elements of this type can be what the file declares; other integers do no harm.
static bool isDeclaredType(Type element, int32_t declared) {
  auto isNumber = [](Type type) {
    return isa_and_nonnull<IntegerType>(type) && !type.isInteger(1);
  };
  Type own = nn::onnxElementType(element.getContext(), declared);
  return own == element || (isNumber(own) && isNumber(element));
}

static std::string elementNameOf(Type type) {
  for (int32_t number = 1; onnx::TensorProto::DataType_IsValid(number); ++number)
    if (nn::onnxElementType(type.getContext(), number) == type)
      return elementName(number);
  return "another type";
}

// An output is what the nodes make. A declaration of something else is a damaged file's where it is
// the type; sizes are often left over from before the file was edited.
bool Importer::checkDeclared(const onnx::ValueInfoProto &output, RankedTensorType type) {
  Subject subject = Subject::ofPart(file.path(), "output '" + output.name() + "'");
  if (!output.has_type() ||
      (output.type().has_tensor_type() &&
       output.type().tensor_type().elem_type() == onnx::TensorProto::UNDEFINED))
    return true;
  if (!output.type().has_tensor_type())
    return succeeded(report.error(ExitCode::unreadableModel, subject,
                                  "is a tensor, but is declared to be none",
                                  "a file that declares it as its node makes it"));
  const auto &declared = output.type().tensor_type();
  if (!isDeclaredType(type.getElementType(), declared.elem_type()))
    return succeeded(report.error(ExitCode::unreadableModel, subject,
                                  "is declared " + elementName(declared.elem_type()) +
                                      ", but its node makes " +
                                      elementNameOf(type.getElementType()),
                                  "a file that declares it as its node makes it"));
  bool isFixed =
      any_of(declared.shape().dim(), [](const auto &one) { return one.dim_value() > 0; });
  bool fits = batch || !isFixed || declared.shape().dim_size() == type.getRank();
  for (int i = 0; fits && !batch && i < declared.shape().dim_size(); ++i)
    fits = !declared.shape().dim(i).has_dim_value() || declared.shape().dim(i).dim_value() < 0 ||
           declared.shape().dim(i).dim_value() == type.getDimSize(i);
  if (!fits)
    report.warning(Finding::staleShape, subject,
                   "is declared with another shape than its node makes, " +
                       shapeText(type.getShape()),
                   "nothing, where the file was edited; else an export with the right shape");
  return true;
}

// A description of a value that its node does not make is a damaged file's, too.
bool Importer::checkDescribed() {
  for (const onnx::ValueInfoProto &described : file.graph().value_info()) {
    ImportedValue *value = find(described.name());
    const int32_t declared = described.type().tensor_type().elem_type();
    if (!value || value->isSequence || !value->tensor || declared == onnx::TensorProto::UNDEFINED)
      continue;
    Type element = cast<RankedTensorType>(value->tensor.getType()).getElementType();
    if (!isDeclaredType(element, declared))
      return succeeded(
          report.error(ExitCode::unreadableModel,
                       Subject::ofPart(file.path(), "value '" + described.name() + "'"),
                       "is described as " + elementName(declared) + ", but its node makes " +
                           elementNameOf(element),
                       "a file that describes it as its node makes it"));
    warnOfShape(described, cast<RankedTensorType>(value->tensor.getType()));
  }
  return true;
}

// Sizes with names are not compared: a recipe gives them others. Nor are any with --batch.
void Importer::warnOfShape(const onnx::ValueInfoProto &described, RankedTensorType type) {
  const auto &declared = described.type().tensor_type();
  if (batch || !declared.has_shape())
    return;
  bool fits = declared.shape().dim_size() == type.getRank();
  for (int i = 0; fits && i < type.getRank(); ++i)
    fits = !declared.shape().dim(i).has_dim_value() || declared.shape().dim(i).dim_value() < 0 ||
           declared.shape().dim(i).dim_value() == type.getDimSize(i);
  if (fits)
    return;
  std::vector<std::string> sizes;
  for (const auto &one : declared.shape().dim())
    sizes.push_back(one.has_dim_value() ? std::to_string(one.dim_value()) : one.dim_param());
  report.warning(
      Finding::staleShape, Subject::ofPart(file.path(), "value '" + described.name() + "'"),
      "is described as [" + llvm::join(sizes, ", ") + "], but its node makes [" +
          llvm::join(map_range(type.getShape(), [](int64_t size) { return std::to_string(size); }),
                     ", ") +
          "]",
      "nothing, where the file was edited; else a file that describes it as its node "
      "makes it");
}

bool Importer::putSamplesFirst(StringRef output, const BatchAxes &batchAxes, Value &result,
                               nn::Builder &at) {
  auto given = batchAxes.find(output);
  if (given == batchAxes.end())
    return true;
  const int64_t rank = nn::tensorType(result).getRank();
  if (given->second >= rank)
    return succeeded(report.error(ExitCode::usage, Subject::ofOption("--batch-axis"),
                                  "'" + output + "' has " + Twine(rank) + " axes, no axis " +
                                      Twine(given->second),
                                  "an axis from 0"));
  if (given->second > 0)
    result = at.move(result, given->second, 0);
  return true;
}

bool Importer::addOutputs(const BatchAxes &batchAxes) {
  if (!checkDescribed())
    return false;
  nn::Builder at(builder, NameLoc::get(builder.getStringAttr("output")));
  SmallVector<Value> results;
  SmallVector<Type> types;
  for (const onnx::ValueInfoProto &output : file.graph().output()) {
    ImportedValue *value = find(output.name());
    if (!value || value->isSequence)
      return succeeded(
          report.error(ExitCode::unsupportedModel, file.path() + ": output '" + output.name() + "'",
                       "is not a tensor", "an output for each tensor of the sequence"));
    results.push_back(tensorOf(*value, at));
    types.push_back(results.back().getType());
    if (!checkDeclared(output, cast<RankedTensorType>(types.back())))
      return false;
    if (!putSamplesFirst(output.name(), batchAxes, results.back(), at))
      return false;
    types.back() = results.back().getType();
    if (batch && !batch->isBatch(results.back()))
      return succeeded(report.error(ExitCode::unsupportedModel,
                                    Subject::ofPart(file.path(), "output '" + output.name() + "'"),
                                    "does not have the samples of --batch along its first axis",
                                    "an export with a symbolic first axis"));
  }
  SmallVector<train::RoleAttrInterface> roles;
  for (const onnx::ValueInfoProto &output : file.graph().output())
    roles.push_back(train::OutputAttr::get(&context, builder.getStringAttr(output.name())));
  for (auto [name, value] : buffers)
    if (value != values[name].tensor) {
      results.push_back(value);
      types.push_back(value.getType());
      roles.push_back(train::NewValueAttr::get(&context, builder.getStringAttr(name)));
    }
  builder.create<func::ReturnOp>(at.location(), results);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), types));
  for (auto [index, role] : enumerate(roles))
    train::setResultRole(function, index, role);
  return true;
}

bool Importer::define(const GraphNode &node, unsigned output, ImportedValue value) {
  if (output < node.outputs.size() && !node.outputs[output].empty()) {
    value.path = paths[node.index];
    values[node.outputs[output]] = std::move(value);
  }
  return true;
}

// A node that the exporter's optimizer made has no module; its first input's is the best guess.
void Importer::inheritPath(const GraphNode &node) {
  if (node.path) {
    paths[node.index] = *node.path;
    return;
  }
  for (const std::string &input : node.inputs)
    if (ImportedValue *value = find(input); value && !value->path.empty()) {
      paths[node.index] = value->path;
      return;
    }
}

// Whether the node reads a weight that the file has as integers: the tensor that stands for it is
// that of floats, and has its scales in it.
bool Importer::readsQuantized(const GraphNode &node) const {
  const std::optional<unsigned> input = quantizedInput(node.domain, node.opType());
  return input && *input < node.inputs.size() && quantized.contains(node.inputs[*input]);
}

bool Importer::importNode(const GraphNode &node) {
  for (const std::string &input : node.inputs)
    if (!input.empty() && !find(input) && !partsOfQuantized.contains(input))
      return true; // its producer failed and was reported
  if (quantizedInput(node.domain, node.opType()) && !readsQuantized(node))
    return succeeded(fail(node,
                          "dequantizes what is no weight of the file: integers and scales that are "
                          "initializers",
                          "the model before quantization"));
  if (readsQuantized(node) && node.opType() == "DequantizeLinear")
    return define(node, 0, *find(node.inputs[0]));
  inheritPath(node);
  if (!importOperator(node))
    return false;
  followSizes(node);
  dropSequences(node);
  return true;
}

static bool isEmpty(Type type) { return cast<RankedTensorType>(type).getNumElements() == 0; }

// Importers may read empty constants (axes, shapes, scales that are not given) and leave them out
// of what they compute; a value without elements is known, however it is computed.
bool Importer::computesOnEmpty(ArrayRef<Operation *> made) {
  return llvm::any_of(made, [](Operation *op) {
    return llvm::any_of(op->getOperandTypes(), isEmpty) &&
           !llvm::all_of(op->getResultTypes(), isEmpty);
  });
}

nn::OnnxResults Importer::callImporter(const GraphNode &node, ImportedNode &view) {
  nn::OnnxImporter importer = nn::findOnnxImporter(node.domain, node.opType(), node.opset);
  if (!importer)
    internalError("node '" + node.label + "' has no importer, but passed the check of operators");
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
  });
  if (std::string why = node.domain.empty() ? checkTypes(node, view.inputTypes()) : "";
      !why.empty())
    return LogicalResult(view.error(why, "insert a Cast before the node"));
  if (failed(nn::checkSupport(view, nn::onnxSupport(node.domain, node.opType()))))
    return failure();
  if (failed(view.alignSecond()))
    return failure();
  nn::OnnxResults results = importer(view);
  if (failed(results) && !view.isRefused())
    (void)fail(node, diagnostics.empty() ? "cannot be imported" : diagnostics);
  if (succeeded(results))
    for (Value result : *results)
      if (result && failed(nn::countElements(view, nn::tensorType(result).getShape())))
        return failure();
  return results;
}

// Though its operands are known.
static bool isNeverKnown(Operation &op) {
  return op.hasTrait<nn::VariesByStep>() || op.hasTrait<nn::OnlyCompiled>();
}

// Builds a node with known inputs beside the function and evaluates it; nullopt where that would
// take too much or gives another value in each step, so that the node is compiled instead.
std::optional<bool> Importer::foldNode(const GraphNode &node) {
  Workplace workplace;
  OpBuilder beside(&context);
  beside.setInsertionPointToEnd(&workplace.block);
  nn::Builder at(beside, provisionalLocation(context, node.index));
  ImportedNode view(*this, node, at, &workplace);
  nn::OnnxResults results = callImporter(node, view);
  if (failed(results))
    return false;
  if (llvm::any_of(workplace.block, isNeverKnown))
    return std::nullopt;
  std::string why;
  ScopedDiagnosticHandler handler(&context,
                                  [&](Diagnostic &diagnostic) { why = diagnostic.str(); });
  auto isResult = [&](Value value) { return llvm::is_contained(*results, value); };
  if (failed(interpreter.run(workplace.block, workplace.values, isResult))) {
    if (interpreter.stoppedAtLimit())
      return std::nullopt;
    return succeeded(fail(node, why));
  }
  for (auto [index, result] : enumerate(*results)) {
    ImportedValue value;
    value.constant = workplace.values.lookup(result);
    if (value.constant)
      define(node, index, std::move(value));
  }
  return true;
}

// The value of what a node made of constants alone beside inputs that do not matter, such as
// CastLike's; `made` are all of its operations.
nn::Tensor Importer::knownValue(Value result, const Operations &made) {
  Operation *op = result.getDefiningOp();
  if (auto constant = dyn_cast_if_present<nn::ConstantOp>(op))
    return nn::Tensor::of(constant.getValue());
  if (!op || !made.contains(op) || isNeverKnown(*op) || op->getNumResults() > 1)
    return {};
  SmallVector<nn::Tensor> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(knownValue(operand, made));
    if (!operands.back())
      return {};
  }
  if (!interpreter.isWithinLimit(op, operands))
    return {};
  return interpreter.evaluate(op, operands).value_or(nn::Tensor());
}

void Importer::defineResult(const GraphNode &node, unsigned output, Value result,
                            const Operations &made) {
  ImportedValue value;
  value.constant = knownValue(result, made);
  if (!value.constant && isEmpty(result.getType()))
    value.constant = nn::Tensor(nn::tensorType(result));
  if (!value.constant)
    value.tensor = result;
  define(node, output, std::move(value));
}

// In order.
SmallVector<Operation *> Importer::madeBehind(Operation *last) {
  SmallVector<Operation *> made;
  Block &block = function.front();
  for (Operation &op :
       llvm::make_range(last ? std::next(last->getIterator()) : block.begin(), block.end()))
    made.push_back(&op);
  return made;
}

bool Importer::keepsSamplesApart(const GraphNode &node, ArrayRef<Operation *> made) {
  if (!batch)
    return true;
  // Statistics of a batch are to be those of the larger one.
  bool isOfBatch = node.domain.empty() && node.opType() == "BatchNormalization";
  bool good = !std::exchange(repeatsSamples, false);
  for (Operation *op : made) {
    bool isFollowed = batch->follow(op);
    good = good && (isFollowed || (isOfBatch && nn::isReduction(op)));
  }
  return good ||
         succeeded(fail(node, "computes one sample of a batch from another, or may do so, with the "
                              "batch of --batch instead of the file's"));
}

bool Importer::importOperator(const GraphNode &node) {
  nn::Builder at(builder, provisionalLocation(context, node.index));
  Operation *last = function.front().empty() ? nullptr : &function.front().back();
  bool handled = false;
  if (node.domain.empty()) {
    bool good = importOfSequences(node, at, handled);
    if (handled)
      return good && keepsSamplesApart(node, madeBehind(last));
  }
  bool allKnown = true;
  for (const std::string &input : node.inputs) {
    ImportedValue *value = input.empty() ? nullptr : find(input);
    if (value && value->isSequence)
      return succeeded(fail(node, "its input '" + input + "' is a sequence, not a tensor"));
    allKnown &= !value || value->constant;
  }
  if (allKnown)
    if (std::optional<bool> folded = foldNode(node))
      return *folded;
  ImportedNode view(*this, node, at);
  nn::OnnxResults results = callImporter(node, view);
  if (failed(results))
    return false;
  SmallVector<Operation *> inOrder = madeBehind(last);
  if (computesOnEmpty(inOrder))
    return succeeded(fail(node, "an input has no elements, which is not supported"));
  if (!keepsSamplesApart(node, inOrder))
    return false;
  // Told by a set: asking for the order of a growing block numbers all of it.
  Operations made(inOrder.begin(), inOrder.end());
  for (unsigned i = 0; i < node.outputs.size(); ++i) {
    Value result = i < results->size() ? (*results)[i] : Value();
    if (!result && view.outputUsed(i))
      return succeeded(fail(node, "output " + Twine(i) + " is used, which is not supported"));
    if (result)
      defineResult(node, i, result, made);
  }
  return true;
}

// Importers materialise operands that they then know as constants.
void Importer::eraseUnused() {
  for (Operation &operation : llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isOpTriviallyDead(&operation)) {
      erased.insert(operation.result_begin(), operation.result_end());
      operation.erase();
    }
}

std::vector<NamedValue> Importer::namedValues() {
  std::vector<NamedValue> named;
  for (const GraphNode *node : graph.nodes())
    for (const std::string &output : node->outputs) {
      ImportedValue *value = output.empty() ? nullptr : find(output);
      bool isTensor = value && value->tensor && !erased.contains(value->tensor);
      if (isTensor || (value && value->constant))
        named.push_back({output, isTensor ? value->tensor : Value(),
                         isTensor ? nn::Tensor() : value->constant});
    }
  return named;
}

OwningOpRef<ModuleOp> Importer::begin(ArrayRef<const Parameter *> parameters,
                                      const Parameters &initializers, ArrayRef<ModelInput> inputs) {
  Location location = NameLoc::get(builder.getStringAttr("model"));
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  builder.setInsertionPointToStart(module->getBody());
  function = builder.create<func::FuncOp>(location, "model", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  addArguments(parameters, inputs);
  addConstants(initializers);
  addTied(initializers);
  return module;
}

OwningOpRef<ModuleOp> Importer::run(ArrayRef<const Parameter *> parameters,
                                    const Parameters &initializers, ArrayRef<ModelInput> inputs,
                                    const BatchAxes &batchAxes) {
  OwningOpRef<ModuleOp> module = begin(parameters, initializers, inputs);
  const bool allImportable = report.empty(); // else it has those that are not
  for (const GraphNode *node : graph.nodes())
    if (allImportable || isImportable(*node))
      importNode(*node);
  if (!report.empty() || !addOutputs(batchAxes))
    return nullptr;
  eraseUnused();
  nodes = nameOperations(*module, graph, paths);
  // Importers check what their operators say; what a damaged file still gets wrong, the verifier
  // finds.
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    (void)report.error(ExitCode::unsupportedModel,
                       {file.path(), nodeName(diagnostic.getLocation()).node, "", 0},
                       diagnostic.str());
  });
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> importGraph(const ModelFile &file, const Graph &graph,
                                  ArrayRef<const Parameter *> parameters,
                                  const Parameters &initializers, ArrayRef<ModelInput> inputs,
                                  const BatchAxes &batchAxes, const BatchNormModes &batchNormModes,
                                  MLIRContext &context, Report &report,
                                  std::vector<NamedValue> &values, std::vector<NamedNode> &nodes) {
  Importer importer(file, graph, batchNormModes, context, report);
  OwningOpRef<ModuleOp> module = importer.run(parameters, initializers, inputs, batchAxes);
  if (module) {
    values = importer.namedValues();
    nodes = importer.takeNodes();
  }
  return module;
}

} // namespace trainc::reader
