// SPDX-License-Identifier: Apache-2.0
//
// The walk over the graph. Each value is a tensor of the function, or known already (then nodes
// that need only such values are evaluated here), or a sequence of these.
#include "compiler/onnx/importer.h"
#include "compiler/onnx/folding.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/onnx_node.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

namespace {

struct ImportedValue {
  Value tensor;                // null while only a constant
  Constant constant;           // null where not known
  DenseElementsAttr attribute; // of the constant, made when asked for
  std::vector<ImportedValue> sequence;
  bool isSequence = false;
  std::string path; // module of the node that made it

  bool exists() const { return tensor || constant || attribute || isSequence; }
};

class Importer;

/// What an importer of one operator sees: see dialects/nn/onnx_node.h.
class ImportedNode : public nn::OnnxNode {
public:
  ImportedNode(Importer &importer, const GraphNode &node, nn::Builder &nodeBuilder)
      : importer(importer), node(node), nodeBuilder(nodeBuilder) {}

  StringRef opType() const override { return node.opType(); }
  int64_t opset() const override { return node.opset; }
  nn::Builder &builder() override { return nodeBuilder; }
  unsigned numInputs() const override { return node.inputs.size(); }
  unsigned numOutputs() const override { return node.outputs.size(); }
  bool hasInput(unsigned index) const override {
    return index < node.inputs.size() && !node.inputs[index].empty();
  }
  bool outputUsed(unsigned index) const override;
  Value input(unsigned index) override;
  DenseElementsAttr constant(unsigned index) override;
  bool hasAttribute(StringRef name) const override { return node.attribute(name); }
  int64_t integer(StringRef name, int64_t otherwise) const override {
    return node.integer(name, otherwise);
  }
  double real(StringRef name, double otherwise) const override {
    return node.real(name, otherwise);
  }
  std::string string(StringRef name, StringRef otherwise) const override {
    return node.string(name, otherwise);
  }
  std::optional<SmallVector<int64_t>> integers(StringRef name) const override {
    return node.integers(name);
  }
  using nn::OnnxNode::integers;
  LogicalResult error(const Twine &message, const Twine &advice = "") override;

private:
  Importer &importer;
  const GraphNode &node;
  nn::Builder &nodeBuilder;
};

class Importer {
public:
  Importer(const ModelFile &file, const Graph &graph, MLIRContext &context, Report &report)
      : file(file), graph(graph), context(context), report(report), builder(&context),
        paths(graph.nodes().size()) {}

  OwningOpRef<ModuleOp> run(ArrayRef<const Decision *> parameters, const Decisions &decisions,
                            ArrayRef<ModelInput> inputs);

  ImportedValue *find(StringRef name) {
    auto found = values.find(name);
    if (found == values.end())
      return nullptr;
    return &found->second;
  }
  Value tensorOf(ImportedValue &value, nn::Builder &at);
  DenseElementsAttr attributeOf(ImportedValue &value);

  const ModelFile &file;
  const Graph &graph;
  MLIRContext &context;
  Report &report;

private:
  void addArguments(ArrayRef<const Decision *> parameters, ArrayRef<ModelInput> inputs);
  void addConstants(const Decisions &decisions);
  void addTied(const Decisions &decisions);
  bool addOutputs();
  bool importNode(const GraphNode &node);
  bool importOperator(const GraphNode &node);
  bool importShape(const GraphNode &node, ImportedValue &input);
  bool importCastLike(const GraphNode &node, const HostTensor &constant, ImportedValue &like);
  void eraseUnused();
  bool hasEmptyInput(const GraphNode &node);
  bool importSequence(const GraphNode &node, nn::Builder &at, bool &handled);
  bool splitToSequence(const GraphNode &node, nn::Builder &at);
  bool define(const GraphNode &node, unsigned output, ImportedValue value);
  void inheritPath(const GraphNode &node);
  LogicalResult fail(const GraphNode &node, const Twine &message, const Twine &advice = "") {
    return report.error(ExitCode::unsupportedModel, graph.subject(node), message, advice);
  }

  OpBuilder builder;
  func::FuncOp function;
  StringMap<ImportedValue> values;
  std::vector<std::string> paths; // module path by node
};

bool ImportedNode::outputUsed(unsigned index) const {
  return index < node.outputs.size() && !node.outputs[index].empty() &&
         (!importer.graph.uses(node.outputs[index]).empty() ||
          importer.graph.isOutput(node.outputs[index]));
}

Value ImportedNode::input(unsigned index) {
  if (hasInput(index))
    return importer.tensorOf(*importer.find(node.inputs[index]), nodeBuilder);
  // Importers of operators newer than the declarations may meet this; import goes on to report
  // more.
  (void)error("input " + Twine(index) + " is missing");
  return nodeBuilder.constant(0, RankedTensorType::get({}, Float32Type::get(&importer.context)));
}

DenseElementsAttr ImportedNode::constant(unsigned index) {
  return hasInput(index) ? importer.attributeOf(*importer.find(node.inputs[index]))
                         : DenseElementsAttr();
}

LogicalResult ImportedNode::error(const Twine &message, const Twine &advice) {
  return importer.report.error(ExitCode::unsupportedModel, importer.graph.subject(node), message,
                               advice);
}

DenseElementsAttr Importer::attributeOf(ImportedValue &value) {
  if (!value.attribute && value.constant)
    value.attribute = reader::attributeOf(context, *value.constant);
  return value.attribute;
}

Value Importer::tensorOf(ImportedValue &value, nn::Builder &at) {
  if (!value.tensor && !value.isSequence)
    value.tensor = at.constant(attributeOf(value));
  return value.tensor;
}

Type typeOf(MLIRContext &context, int32_t dataType) {
  if (dataType == onnx::TensorProto::INT32)
    return IntegerType::get(&context, 32);
  return elementType(context, elementOf(dataType));
}

void Importer::addArguments(ArrayRef<const Decision *> parameters, ArrayRef<ModelInput> inputs) {
  Block &body = function.front();
  auto add = [&](StringRef name, StringRef kind, ArrayRef<int64_t> shape, int32_t dataType) {
    Type type = RankedTensorType::get(shape, typeOf(context, dataType));
    Location location = NameLoc::get(builder.getStringAttr(name));
    function.insertArgument(body.getNumArguments(), type, builder.getDictionaryAttr({}), location);
    unsigned index = body.getNumArguments() - 1;
    function.setArgAttr(index, "train.name", builder.getStringAttr(name));
    function.setArgAttr(index, "train.kind", builder.getStringAttr(kind));
    values[name].tensor = body.getArgument(index);
    return index;
  };
  for (const Decision *parameter : parameters) {
    unsigned index =
        add(parameter->name(), "parameter", parameter->tensor->shape, parameter->tensor->dataType);
    if (!parameter->moduleName.empty() && parameter->moduleName != parameter->name())
      function.setArgAttr(index, "train.module", builder.getStringAttr(parameter->moduleName));
    if (parameter->role == Role::frozen)
      function.setArgAttr(index, "train.frozen", builder.getUnitAttr());
    if (parameter->decays)
      function.setArgAttr(index, "train.decay", builder.getUnitAttr());
  }
  for (const ModelInput &input : inputs)
    add(input.name, "input", input.shape, input.dataType);
}

void Importer::addConstants(const Decisions &decisions) {
  for (const auto &decision : decisions) {
    if (decision->role != Role::constant)
      continue;
    const TensorBytes &tensor = *decision->tensor;
    ImportedValue &value = values[tensor.name];
    value.constant = hostTensor(tensor);
    if (value.constant)
      continue;
    auto type = RankedTensorType::get(tensor.shape, typeOf(context, tensor.dataType));
    if (isa<FloatType>(type.getElementType()) || tensor.dataType == onnx::TensorProto::INT64)
      value.attribute = DenseElementsAttr::getFromRawBuffer(type, tensor.bytes);
    else
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "initializer '" + tensor.name + "' is too large for a constant (" +
                             Twine(tensor.count) + " elements)");
  }
}

// A tied initializer is its parameter, or one transposition of it for all uses.
void Importer::addTied(const Decisions &decisions) {
  for (const auto &decision : decisions) {
    if (decision->role != Role::tied)
      continue;
    Value parameter = values[decision->canonical->name()].tensor;
    nn::Builder at(builder, NameLoc::get(builder.getStringAttr(decision->canonical->name())));
    values[decision->name()].tensor =
        decision->transposed ? at.transpose(parameter, {1, 0}) : parameter;
  }
}

bool Importer::addOutputs() {
  nn::Builder at(builder, NameLoc::get(builder.getStringAttr("output")));
  SmallVector<Value> results;
  SmallVector<Type> types;
  for (const onnx::ValueInfoProto &output : file.graph().output()) {
    ImportedValue *value = find(output.name());
    if (!value || value->isSequence)
      return succeeded(report.error(ExitCode::unsupportedModel,
                                    file.path() + ": output '" + output.name() + "'",
                                    "is no tensor"));
    results.push_back(tensorOf(*value, at));
    types.push_back(results.back().getType());
  }
  builder.create<func::ReturnOp>(at.location(), results);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), types));
  for (auto [index, output] : enumerate(file.graph().output())) {
    function.setResultAttr(index, "train.name", builder.getStringAttr(output.name()));
    function.setResultAttr(index, "train.kind", builder.getStringAttr("output"));
  }
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

// Shape and Size need only the type.
bool Importer::importShape(const GraphNode &node, ImportedValue &input) {
  if (input.isSequence)
    return succeeded(fail(node, "its input is a sequence, not a tensor"));
  SmallVector<int64_t> shape;
  if (input.tensor)
    shape = to_vector(nn::tensorType(input.tensor).getShape());
  else if (input.constant)
    shape = input.constant->shape;
  else
    shape = to_vector(input.attribute.getType().getShape());
  ImportedValue result;
  if (node.opType() == "Size") {
    result.constant = makeInteger(elementCount(shape));
  } else {
    int64_t rank = shape.size(), start = node.integer("start", 0), end = node.integer("end", rank);
    start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
    end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
    result.constant = makeIntegers(ArrayRef(shape).slice(start, end - start));
  }
  return define(node, 0, result);
}

bool Importer::splitToSequence(const GraphNode &node, nn::Builder &at) {
  Value x = tensorOf(*find(node.inputs[0]), at);
  ArrayRef<int64_t> shape = nn::tensorType(x).getShape();
  auto axis = normalAxis(node.integer("axis", 0), shape.size());
  if (!axis)
    return succeeded(fail(node, "axis " + Twine(node.integer("axis", 0)) +
                                    " is out of range for rank " + Twine(shape.size())));
  ImportedNode view(*this, node, at);
  auto split = view.integers(1);
  bool hasSplit = view.hasInput(1);
  if (hasSplit && !split)
    return succeeded(fail(node, "its split sizes must be known when the model is compiled"));
  bool single = !hasSplit || nn::tensorType(view.input(1)).getRank() == 0;
  int64_t size = shape[*axis], chunk = !hasSplit ? 1 : split->empty() ? 0 : (*split)[0];
  SmallVector<int64_t> sizes;
  if (single && chunk > 0)
    for (int64_t at = 0; at < size; at += chunk)
      sizes.push_back(std::min(chunk, size - at));
  else if (!single)
    sizes = *split;
  ImportedValue result;
  result.isSequence = true;
  SmallVector<int64_t> starts(shape.size(), 0), part(shape), strides(shape.size(), 1);
  for (int64_t length : sizes) {
    part[*axis] = length;
    if (length <= 0 || length > size - starts[*axis])
      return succeeded(fail(node, "split sizes are not positive or do not sum to " + Twine(size)));
    ImportedValue element;
    element.tensor = at.create<nn::SliceOp>(x, starts, part, strides);
    if (!hasSplit && !node.integer("keepdims", 1)) {
      SmallVector<int64_t> squeezed(part);
      squeezed.erase(squeezed.begin() + *axis);
      element.tensor = at.reshape(element.tensor, squeezed);
    }
    result.sequence.push_back(std::move(element));
    starts[*axis] += length;
  }
  if (starts[*axis] != size)
    return succeeded(fail(node, "split sizes do not sum to " + Twine(size)));
  return define(node, 0, std::move(result));
}

bool Importer::importSequence(const GraphNode &node, nn::Builder &at, bool &handled) {
  handled = true;
  if (node.opType() == "SplitToSequence")
    return splitToSequence(node, at);
  if (node.opType() == "SequenceConstruct") {
    ImportedValue result;
    result.isSequence = true;
    for (const std::string &input : node.inputs)
      result.sequence.push_back(*find(input));
    return define(node, 0, std::move(result));
  }
  if (node.opType() != "SequenceAt") {
    handled = false;
    return true;
  }
  ImportedNode view(*this, node, at);
  ImportedValue *sequence = find(node.inputs[0]);
  auto position = view.integers(1);
  if (!sequence->isSequence || !position || position->size() != 1)
    return succeeded(fail(node, "its position must be known when the model is compiled"));
  auto index = normalAxis((*position)[0], sequence->sequence.size());
  if (!index)
    return succeeded(fail(node, "position " + Twine((*position)[0]) +
                                    " is out of range for a sequence of " +
                                    Twine(sequence->sequence.size())));
  return define(node, 0, sequence->sequence[*index]);
}

// Only the type of the second operand matters.
bool Importer::importCastLike(const GraphNode &node, const HostTensor &constant,
                              ImportedValue &like) {
  if (like.isSequence)
    return succeeded(fail(node, "its input is a sequence, not a tensor"));
  Type type =
      like.tensor ? nn::tensorType(like.tensor).getElementType() : like.attribute.getElementType();
  ImportedValue result;
  result.constant = converted(constant, type.isF32()        ? Element::f32
                                        : type.isF64()      ? Element::f64
                                        : type.isInteger(1) ? Element::boolean
                                                            : Element::i64);
  return define(node, 0, std::move(result));
}

bool Importer::importNode(const GraphNode &node) {
  std::vector<Constant> constants;
  bool allConstant = true;
  for (const std::string &input : node.inputs) {
    ImportedValue *value = input.empty() ? nullptr : find(input);
    if (!input.empty() && !value)
      return true; // its producer failed and was reported
    constants.push_back(value ? value->constant : nullptr);
    allConstant &= input.empty() || (value->constant != nullptr);
  }
  inheritPath(node);
  if (node.domain.empty() && (node.opType() == "Shape" || node.opType() == "Size"))
    return importShape(node, *find(node.inputs[0]));
  if (node.domain.empty() && node.opType() == "CastLike" && constants[0] && !constants[1])
    return importCastLike(node, *constants[0], *find(node.inputs[1]));
  if (allConstant)
    if (Folded folded = fold(node, constants)) {
      for (auto [index, constant] : enumerate(*folded)) {
        ImportedValue value;
        value.constant = constant;
        define(node, index, std::move(value));
      }
      return true;
    }
  return importOperator(node);
}

// Tensors of the nn dialect have elements. Empty integer constants are axes and shapes.
bool Importer::hasEmptyInput(const GraphNode &node) {
  return llvm::any_of(node.inputs, [&](const std::string &input) {
    ImportedValue *value = input.empty() ? nullptr : find(input);
    if (!value || !value->constant || value->constant->count() != 0)
      return false;
    return value->constant->element != Element::i64 || node.opType() == "Gather" ||
           node.opType() == "Concat";
  });
}

bool Importer::importOperator(const GraphNode &node) {
  nn::Builder at(builder, provisionalLocation(context, node.index));
  bool handled = false;
  if (node.domain.empty()) {
    bool good = importSequence(node, at, handled);
    if (handled)
      return good;
  }
  for (const std::string &input : node.inputs)
    if (!input.empty() && find(input)->isSequence)
      return succeeded(fail(node, "its input '" + input + "' is a sequence, not a tensor"));
  if (hasEmptyInput(node))
    return succeeded(fail(node, "an input has no elements, which is not supported"));
  nn::OnnxImporter importer = nn::findOnnxImporter(node.domain, node.opType(), node.opset);
  if (!importer)
    return succeeded(fail(node, "its inputs must be known when the model is compiled, but are "
                                "computed from data or parameters, or do not fit the operator"));
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
  });
  size_t before = report.size();
  ImportedNode view(*this, node, at);
  nn::OnnxResults results = importer(view);
  if (failed(results)) {
    if (report.size() == before)
      (void)fail(node, diagnostics.empty() ? "cannot be imported" : diagnostics);
    return false;
  }
  for (unsigned i = 0; i < node.outputs.size(); ++i) {
    ImportedValue value;
    if (i < results->size())
      value.tensor = (*results)[i];
    if (value.tensor)
      define(node, i, std::move(value));
    else if (view.outputUsed(i))
      return succeeded(fail(node, "output " + Twine(i) + " is used, which is not supported"));
  }
  return true;
}

// Importers materialise operands that they then know as constants.
void Importer::eraseUnused() {
  for (Operation &operation : llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isOpTriviallyDead(&operation))
      operation.erase();
}

OwningOpRef<ModuleOp> Importer::run(ArrayRef<const Decision *> parameters,
                                    const Decisions &decisions, ArrayRef<ModelInput> inputs) {
  size_t before = report.size();
  Location location = NameLoc::get(builder.getStringAttr("model"));
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  builder.setInsertionPointToStart(module->getBody());
  function = builder.create<func::FuncOp>(location, "model", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  addArguments(parameters, inputs);
  addConstants(decisions);
  addTied(decisions);
  for (const GraphNode *node : graph.nodes())
    importNode(*node); // the report knows
  if (report.size() != before || !addOutputs())
    return nullptr;
  eraseUnused();
  nameOperations(*module, graph, paths);
  // Importers check what their operators say; what a damaged file still gets wrong, the verifier
  // finds.
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    (void)report.error(ExitCode::unsupportedModel, subjectAt(file.path(), diagnostic.getLocation()),
                       diagnostic.str());
  });
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

} // namespace

OwningOpRef<ModuleOp> importGraph(const ModelFile &file, const Graph &graph,
                                  ArrayRef<const Decision *> parameters, const Decisions &decisions,
                                  ArrayRef<ModelInput> inputs, MLIRContext &context,
                                  Report &report) {
  return Importer(file, graph, context, report).run(parameters, decisions, inputs);
}

static bool isBuiltIn(const GraphNode &node) {
  return node.domain.empty() && llvm::StringSwitch<bool>(node.opType())
                                    .Cases("Shape", "Size", "SplitToSequence", true)
                                    .Cases("SequenceAt", "SequenceConstruct", true)
                                    .Default(false);
}

static StringRef adviceFor(StringRef opType) {
  return llvm::StringSwitch<StringRef>(opType)
      .Case("BatchNormalization", "layer norm or group norm; batch statistics are not computed yet")
      .Cases("If", "Loop", "Scan", "an export without control flow: torch.jit.trace or dynamo")
      .Cases("LSTM", "GRU", "RNN", "the recurrence written out in the module")
      .Cases("QuantizeLinear", "DequantizeLinear", "the model before quantization")
      .Default("trainc --list-operators, which prints what can be imported");
}

bool checkOperators(const Graph &graph, Report &report) {
  size_t before = report.size();
  for (const GraphNode *node : graph.nodes()) {
    int64_t oldest = 0;
    if (node->domain.empty() && !servesOpset(node->opset)) { // a local function may have its own
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node),
                         "the operator set is not among those supported");
      continue;
    }
    if (isBuiltIn(*node) ||
        nn::findOnnxImporter(node->domain, node->opType(), node->opset, &oldest) ||
        canFold(*node)) {
      if (std::string why = checkInputs(*node); !why.empty())
        (void)report.error(ExitCode::unreadableModel, graph.subject(*node), why);
      continue;
    }
    if (node->opset == 0 && !node->domain.empty())
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node),
                         "unsupported operator of domain '" + node->domain + "'",
                         "an export that uses ONNX's own operators only");
    else if (oldest)
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node),
                         "the operator is supported from opset " + Twine(oldest) + " on",
                         "export again with opset_version=20");
    else
      (void)report.error(ExitCode::unsupportedModel, graph.subject(*node), "unsupported operator",
                         adviceFor(node->opType()));
  }
  return report.size() == before;
}

} // namespace trainc::reader
