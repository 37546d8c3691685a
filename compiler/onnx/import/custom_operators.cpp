// SPDX-License-Identifier: Apache-2.0
//
// Imports nodes of a user's operator: nn.custom with the numbers and shapes that the sizes of the
// node's inputs give.
#include "compiler/onnx/import/custom_operators.h"

#include "compiler/onnx/graph/size_expression.h"
#include "compiler/onnx/import/operator_manifest.h"
#include <map>
#include <set>

using namespace mlir;

namespace trainc {

namespace {

/// Imports one node.
class CustomNode {
public:
  CustomNode(const OperatorManifest &of, nn::OnnxNode &node) : of(of), node(node) {}

  nn::OnnxResults import() {
    if (failed(readInputs()) || failed(checkAttributes()))
      return failure();
    SmallVector<Type> types;
    for (const ManifestOutput &output : of.outputs) {
      auto type = typeOf(output);
      if (failed(type))
        return failure();
      types.push_back(*type);
      elements += type->getNumElements();
    }
    auto forward = describe(of.forward);
    if (failed(forward))
      return failure();
    OpBuilder &at = node.builder().op();
    SmallVector<Attribute> backward;
    for (const ManifestFunction &function : of.backward) {
      auto described = describe(function);
      if (failed(described) || failed(checkGradients(function, types)))
        return failure();
      NamedAttrList list(*described);
      list.set("inputs", at.getDenseI64ArrayAttr(function.inputs));
      list.set("gradients", at.getDenseI64ArrayAttr(function.gradients));
      backward.push_back(list.getDictionary(at.getContext()));
    }
    auto made = at.create<nn::CustomOp>(
        node.builder().location(), types, inputs, forward->getAs<StringAttr>("function"),
        at.getStringAttr(of.header), forward->getAs<ArrayAttr>("numbers"),
        forward->getAs<FloatAttr>("flops"), at.getArrayAttr(backward));
    return SmallVector<Value>(made.getOuts());
  }

private:
  LogicalResult readInputs() {
    for (auto [i, entry] : llvm::enumerate(of.inputs))
      if (!node.hasInput(i))
        return node.error("has no input '" + entry.name + "', number " + Twine(i) +
                          " of its manifest");
    if (node.numInputs() != of.inputs.size())
      return node.error("has " + Twine(node.numInputs()) + " inputs, and in its manifest " +
                        Twine(of.inputs.size()));
    if (node.numOutputs() > of.outputs.size())
      return node.error("has " + Twine(node.numOutputs()) + " outputs, and in its manifest " +
                        Twine(of.outputs.size()));
    for (unsigned i = 0; i < of.inputs.size(); ++i)
      inputs.push_back(node.input(i));
    return success(llvm::all_of(inputs, [](Value input) { return input != nullptr; }));
  }

  LogicalResult checkAttributes() {
    for (const auto &[name, kind] : node.attributeKinds()) {
      const ManifestAttribute *entry = of.attribute(name);
      if (!entry)
        return node.error("attribute '" + name + "' is not in its manifest");
      // Exporters write a float that is whole as they like.
      if (kind != nn::AttributeKind::integer &&
          (!entry->isFloat || kind != nn::AttributeKind::real))
        return node.error("attribute '" + name + "' is not " +
                          (entry->isFloat ? "a float" : "an int") + ", which its manifest says");
      if (kind == nn::AttributeKind::integer)
        whole.insert(name);
    }
    for (const ManifestAttribute &entry : of.attributes)
      if (!entry.hasDefault && !node.hasAttribute(entry.name))
        return node.error("has no attribute '" + entry.name +
                          "', which has no default in its manifest");
    return success();
  }

  /// A whole number, or an error of the node.
  FailureOr<int64_t> evaluate(const std::string &expression) {
    std::string problem;
    auto lookup = [&](StringRef name, std::optional<int64_t> index,
                      std::string &wrong) -> std::optional<int64_t> {
      if (!index)
        return node.integer(name, of.attribute(name)->integer);
      RankedTensorType type = nn::tensorType(inputs[*of.input(name)]);
      if (*index < type.getRank())
        return type.getDimSize(static_cast<unsigned>(*index));
      wrong = "input '" + name.str() + "' has " + std::to_string(type.getRank()) + " axes";
      return std::nullopt;
    };
    std::optional<int64_t> value = evaluateSize(expression, lookup, problem);
    if (!value)
      return node.error("'" + expression + "' of its manifest: " + problem);
    return *value;
  }

  FailureOr<RankedTensorType> typeOf(const ManifestOutput &output) {
    SmallVector<int64_t> shape;
    if (!output.like.empty())
      shape = SmallVector<int64_t>(nn::tensorType(inputs[*of.input(output.like)]).getShape());
    for (const std::string &size : output.shape) {
      auto value = evaluate(size);
      if (failed(value))
        return failure();
      shape.push_back(*value);
    }
    if (failed(countElements(node, shape)))
      return failure();
    Type element = manifestType(output.type, node.builder().op().getContext());
    if (auto input = of.input(output.type))
      element = nn::tensorType(inputs[*input]).getElementType();
    return RankedTensorType::get(shape, element);
  }

  /// The members of nn.custom that a function has.
  FailureOr<DictionaryAttr> describe(const ManifestFunction &function) {
    OpBuilder &at = node.builder().op();
    SmallVector<Attribute> numbers;
    for (const std::string &number : function.numbers) {
      if (const ManifestAttribute *attribute = of.attribute(number);
          attribute && attribute->isFloat) {
        numbers.push_back(at.getF64FloatAttr(whole.count(number)
                                                 ? static_cast<double>(node.integer(number, 0))
                                                 : node.real(number, attribute->real)));
        continue;
      }
      auto value = evaluate(number);
      if (failed(value))
        return failure();
      numbers.push_back(at.getI64IntegerAttr(*value));
    }
    auto flops = FailureOr<int64_t>(elements);
    if (!function.flops.empty())
      flops = evaluate(function.flops);
    if (failed(flops))
      return failure();
    if (*flops < 0)
      return node.error("'" + function.flops + "' of its manifest: " + Twine(*flops) +
                        " operations");
    return at.getDictionaryAttr(
        {at.getNamedAttr("function", at.getStringAttr("::" + function.name)),
         at.getNamedAttr("numbers", at.getArrayAttr(numbers)),
         at.getNamedAttr("flops", at.getF64FloatAttr(static_cast<double>(*flops)))});
  }

  /// Integers have none.
  LogicalResult checkGradients(const ManifestFunction &function, ArrayRef<Type> results) {
    auto isFloat = [](Type type) {
      return isa<FloatType>(cast<RankedTensorType>(type).getElementType());
    };
    for (int64_t input : function.gradients)
      if (!isFloat(inputs[static_cast<size_t>(input)].getType()))
        return node.error("input '" + of.inputs[static_cast<size_t>(input)].name +
                          "', whose gradient its manifest has, is not of floats");
    const size_t first = inputs.size() + results.size();
    for (int64_t input : function.inputs)
      if (auto number = static_cast<size_t>(input);
          number >= first && !isFloat(results[number - first]))
        return node.error("output '" + of.outputs[number - first].name +
                          "', whose gradient its manifest reads, is not of floats");
    return success();
  }

  const OperatorManifest &of;
  nn::OnnxNode &node;
  SmallVector<Value> inputs;
  int64_t elements = 0;        // of the results
  std::set<std::string> whole; // attributes that the file has as integers
};

} // namespace

std::vector<CustomOperator> readCustomOperators(ArrayRef<std::string> paths, StringRef target,
                                                Report &report) {
  std::vector<CustomOperator> operators;
  std::set<std::string> folders;
  std::map<std::string, std::string> functions; // whose they are
  for (const std::string &path : paths) {
    std::shared_ptr<const OperatorManifest> manifest = readOperatorManifest(path, target, report);
    if (!manifest)
      continue;
    auto refuse = [&](const Twine &message,
                      const Twine &advice = "a domain and a name of its own") {
      (void)report.error(ExitCode::usage, Subject::ofOption("--operator", path),
                         "'" + manifest->qualifiedName() + "' " + message, advice);
    };
    if (!folders.insert(manifest->folder).second) {
      refuse("is given twice");
      continue;
    }
    if (manifest->domain == "ai.onnx" ||
        nn::findOnnxImporter(manifest->domain, manifest->name, INT64_MAX)) {
      refuse(manifest->domain == "ai.onnx" ? "is in ONNX's own domain"
                                           : "is an operator of trainc's");
      continue;
    }
    std::set<std::string> own{manifest->forward.name};
    for (const ManifestFunction &function : manifest->backward)
      own.insert(function.name);
    auto taken = llvm::find_if(own, [&](const std::string &name) { return functions.count(name); });
    if (taken != own.end()) {
      refuse("has the function '" + *taken + "', which '" + functions[*taken] + "' has, too",
             "functions, or a namespace, of its own");
      continue;
    }
    for (const std::string &name : own)
      functions[name] = manifest->qualifiedName();
    nn::OnnxRegistration(
        manifest->name, /*since=*/1,
        [manifest](nn::OnnxNode &node) { return CustomNode(*manifest, node).import(); },
        [manifest](unsigned input, ArrayRef<int64_t>) {
          return input < manifest->inputs.size() ? manifest->inputs[input].weight
                                                 : nn::OnnxWeight::none;
        },
        manifest->domain)
        .means(manifest->meaning);
    operators.push_back({path, manifest->qualifiedName(), manifest->folder, manifest->files});
  }
  return operators;
}

} // namespace trainc
