// SPDX-License-Identifier: Apache-2.0
//
// Reads a manifest into a description, checks it as far as it goes without a model, and imports
// nodes by it: nn.custom with the numbers and shapes that the sizes of the node's inputs give.
#include "compiler/onnx/custom_operators.h"
#include "compiler/onnx/size_expression.h"
#include "dialects/nn/onnx_node.h"
#include "runtime/bounded_json.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <memory>
#include <set>

using namespace mlir;
using json = nlohmann::ordered_json;

namespace trainc {

namespace {

constexpr int64_t kLargestManifest = 1 << 20; // bytes
constexpr int kDeepestManifest = 4;

struct InputEntry {
  std::string name;
  nn::OnnxWeight weight = nn::OnnxWeight::none;
};

struct AttributeEntry {
  std::string name;
  bool isFloat = false;
  std::optional<double> byDefault;
};

struct OutputEntry {
  std::string name;
  std::string like;               // has the shape of this input; empty: `shape`
  std::vector<std::string> shape; // expressions
  std::string type;               // an element type, or of which input
};

struct FunctionEntry {
  std::string name;
  std::vector<std::string> numbers; // expressions, or attributes that are floats
  std::string flops;                // an expression; empty: one for each element of the results
  SmallVector<int64_t> inputs, gradients; // of a backward function, as nn.custom has them
};

struct Description {
  std::string library; // what is included
  std::vector<InputEntry> inputs;
  std::vector<AttributeEntry> attributes;
  std::vector<OutputEntry> outputs;
  FunctionEntry forward;
  std::vector<FunctionEntry> backward;

  std::optional<size_t> input(StringRef name) const {
    auto found = llvm::find_if(inputs, [&](const InputEntry &entry) { return entry.name == name; });
    return found == inputs.end() ? std::nullopt : std::optional<size_t>(found - inputs.begin());
  }
  std::optional<size_t> output(StringRef name) const {
    auto found =
        llvm::find_if(outputs, [&](const OutputEntry &entry) { return entry.name == name; });
    return found == outputs.end() ? std::nullopt : std::optional<size_t>(found - outputs.begin());
  }
  const AttributeEntry *attribute(StringRef name) const {
    auto found =
        llvm::find_if(attributes, [&](const AttributeEntry &entry) { return entry.name == name; });
    return found == attributes.end() ? nullptr : &*found;
  }
};

bool isIdentifier(StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Perhaps with namespaces in front.
bool isFunctionName(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, "::");
  return llvm::all_of(parts, isIdentifier);
}

std::optional<nn::OnnxWeight> weightOf(StringRef word) {
  return llvm::StringSwitch<std::optional<nn::OnnxWeight>>(word)
      .Case("table", nn::OnnxWeight::table)
      .Case("matrix", nn::OnnxWeight::matrix)
      .Case("filter", nn::OnnxWeight::filter)
      .Case("scale", nn::OnnxWeight::scale)
      .Case("bias", nn::OnnxWeight::bias)
      .Default(std::nullopt);
}

constexpr const char *kTypes = "float32, float64, int32, int64, bool";

Type elementTypeNamed(StringRef word, MLIRContext *context) {
  return llvm::StringSwitch<Type>(word)
      .Case("float32", Float32Type::get(context))
      .Case("float64", Float64Type::get(context))
      .Case("int32", IntegerType::get(context, 32))
      .Case("int64", IntegerType::get(context, 64))
      .Case("bool", IntegerType::get(context, 1))
      .Default(Type());
}

/// What a manifest says, or messages that name the member.
class ManifestReader {
public:
  ManifestReader(const std::string &path, StringRef target, Report &report)
      : path(path), target(target), report(report) {}

  std::shared_ptr<Description> read(CustomOperator &about) {
    std::optional<json> document = parse();
    if (!document)
      return nullptr;
    const json &top = *document;
    const size_t before = report.size();
    checkMembers(top, "",
                 {"operator", "domain", "header", "sources", "inputs", "attributes", "outputs",
                  "forward", "backward"});
    about.manifest = path;
    about.name = text(top, "", "operator");
    about.domain = text(top, "", "domain", /*isNeeded=*/false);
    if (!about.name.empty() && !isIdentifier(about.name))
      fail("member 'operator' is '" + about.name + "', which is no name of an operator");
    std::string folder = about.domain + "." + about.name;
    for (char &c : folder)
      c = llvm::isAlnum(c) || c == '.' || c == '_' || c == '-' ? c : '_';
    about.folder = "operators/" + folder;
    readFiles(top, about);
    readInputs(top);
    readAttributes(top);
    readOutputs(top);
    if (top.contains("forward"))
      made->forward = function(top["forward"], "forward", /*isBackward=*/false);
    else
      fail("has no member 'forward', the function that computes the outputs");
    for (const json &entry : list(top, "", "backward", /*isNeeded=*/false))
      made->backward.push_back(function(entry, "backward", /*isBackward=*/true));
    checkGradients();
    return report.size() == before ? made : nullptr;
  }

private:
  void fail(const llvm::Twine &message, const llvm::Twine &advice = "docs/custom_operators.md") {
    (void)report.error(ExitCode::usage, Subject::ofOption("--operator", path), message, advice);
  }

  std::optional<json> parse() {
    auto size = uint64_t(0);
    if (std::error_code error = llvm::sys::fs::file_size(path, size)) {
      fail("cannot be read: " + error.message(), "the path of a manifest");
      return std::nullopt;
    }
    auto file = size <= kLargestManifest && llvm::sys::fs::is_regular_file(path)
                    ? llvm::MemoryBuffer::getFile(path, /*IsText=*/true)
                    : std::errc::file_too_large;
    if (!file) {
      fail(llvm::sys::fs::is_regular_file(path) ? "cannot be read: " + file.getError().message()
                                                : "is no regular file",
           "the path of a manifest");
      return std::nullopt;
    }
    json document = bounded_json<json>((*file)->getBuffer().str(), kDeepestManifest);
    if (document.is_object())
      return document;
    fail("is no manifest: a JSON object is expected, of values no deeper than " +
         llvm::Twine(kDeepestManifest));
    return std::nullopt;
  }

  static std::string named(StringRef where, StringRef member) {
    return ("'" + (where.empty() ? "" : where + ".") + member + "'").str();
  }

  void checkMembers(const json &object, StringRef where, std::set<std::string> known) {
    for (auto &[name, value] : object.items())
      if (!known.count(name))
        fail("unknown member " + named(where, name), "one of " + llvm::join(known, ", "));
  }

  std::string text(const json &object, StringRef where, const char *member, bool isNeeded = true) {
    if (object.contains(member) && object[member].is_string())
      return object[member].get<std::string>();
    if (object.contains(member))
      fail("member " + named(where, member) + " is no text");
    else if (isNeeded)
      fail("has no member " + named(where, member));
    return "";
  }

  std::vector<json> list(const json &object, StringRef where, const char *member,
                         bool isNeeded = true) {
    if (object.contains(member) && object[member].is_array())
      return {object[member].begin(), object[member].end()};
    if (object.contains(member))
      fail("member " + named(where, member) + " is no list");
    else if (isNeeded)
      fail("has no member " + named(where, member));
    return {};
  }

  std::vector<std::string> texts(const json &object, StringRef where, const char *member,
                                 bool isNeeded = true) {
    std::vector<std::string> result;
    for (const json &entry : list(object, where, member, isNeeded))
      if (entry.is_string())
        result.push_back(entry.get<std::string>());
      else if (entry.is_number_integer())
        result.push_back(entry.dump());
      else
        fail("member " + named(where, member) + " has an entry that is no text: " + entry.dump());
    return result;
  }

  void readFiles(const json &top, CustomOperator &about) {
    std::vector<std::string> names = {text(top, "", "header")};
    made->library = about.folder + "/" + llvm::sys::path::filename(names[0]).str();
    if (top.contains("sources") && top["sources"].is_object()) {
      checkMembers(top["sources"], "sources", {"cpu", "cuda"});
      llvm::append_range(names, texts(top["sources"], "sources", target.str().c_str(), false));
      if (names.size() == 1)
        fail("has no sources for --target " + target,
             "them in the member 'sources." + target + "'");
    } else {
      fail("has no object 'sources' with a list for each target, cpu or cuda");
    }
    std::set<std::string> there;
    for (const std::string &name : names) {
      llvm::SmallString<128> file(llvm::sys::path::parent_path(path));
      llvm::sys::path::append(file, name);
      if (llvm::sys::path::is_absolute(name))
        file = name;
      const std::string base = llvm::sys::path::filename(name).str();
      if (!name.empty() && !llvm::sys::fs::is_regular_file(file))
        fail("names '" + name + "', which is no regular file", "paths from the manifest's folder");
      else if (!there.insert(base).second)
        fail("has two files named '" + base + "'");
      about.files.push_back(file.str().str());
    }
  }

  /// A new name of an input, output or attribute.
  std::string newName(const std::string &name, const char *member) {
    if (!isIdentifier(name))
      fail("member '" + llvm::Twine(member) + "' has the name '" + name +
           "'; letters, digits and _ are expected, a letter first");
    else if (!names.insert(name).second)
      fail("two inputs, outputs or attributes have the name '" + name + "'");
    return name;
  }

  void readInputs(const json &top) {
    for (const json &entry : list(top, "", "inputs")) {
      InputEntry input;
      if (entry.is_object()) {
        checkMembers(entry, "inputs", {"name", "weight"});
        input.name = text(entry, "inputs", "name");
        if (std::string weight = text(entry, "inputs", "weight", false); !weight.empty()) {
          if (auto kind = weightOf(weight))
            input.weight = *kind;
          else
            fail("member 'inputs.weight' is '" + weight + "'",
                 "one of table, matrix, filter, scale, bias");
        }
      } else if (entry.is_string()) {
        input.name = entry.get<std::string>();
      } else {
        fail("member 'inputs' has an entry that is neither a name nor an object");
      }
      newName(input.name, "inputs");
      made->inputs.push_back(input);
    }
  }

  void readAttributes(const json &top) {
    if (!top.contains("attributes"))
      return;
    if (!top["attributes"].is_object())
      return fail("member 'attributes' is no object");
    for (auto &[name, entry] : top["attributes"].items()) {
      AttributeEntry attribute;
      attribute.name = newName(name, "attributes");
      if (!entry.is_object()) {
        fail("attribute '" + name + "' is no object such as {\"type\": \"float\", \"default\": 1}");
        continue;
      }
      checkMembers(entry, "attributes." + name, {"type", "default"});
      const std::string type = text(entry, "attributes." + name, "type");
      attribute.isFloat = type == "float";
      if (type != "float" && type != "int")
        fail("attribute '" + name + "' has the type '" + type + "'", "int or float");
      if (entry.contains("default")) {
        const json &value = entry["default"];
        if (attribute.isFloat ? !value.is_number() : !value.is_number_integer())
          fail("the default of attribute '" + name + "' is no " + type);
        else
          attribute.byDefault = value.get<double>();
      }
      made->attributes.push_back(attribute);
    }
  }

  void readOutputs(const json &top) {
    for (const json &entry : list(top, "", "outputs")) {
      if (!entry.is_object()) {
        fail("member 'outputs' has an entry that is no object");
        continue;
      }
      checkMembers(entry, "outputs", {"name", "shape", "type"});
      OutputEntry output{newName(text(entry, "outputs", "name"), "outputs"), "", {}, ""};
      if (entry.contains("shape") && entry["shape"].is_string()) {
        output.like = entry["shape"].get<std::string>();
        if (!made->input(output.like))
          fail("output '" + output.name + "' has the shape of '" + output.like +
               "', which is no input");
      } else {
        output.shape = texts(entry, "outputs", "shape");
        for (const std::string &size : output.shape)
          checkExpression(size, "outputs.shape");
      }
      output.type = text(entry, "outputs", "type");
      MLIRContext context;
      if (!made->input(output.type) && !elementTypeNamed(output.type, &context))
        fail("output '" + output.name + "' has the type '" + output.type + "'",
             "the name of an input, whose type it is then, or one of " + llvm::Twine(kTypes));
      made->outputs.push_back(std::move(output));
    }
    if (made->outputs.empty() || made->inputs.empty())
      fail("needs an input and an output");
  }

  void checkExpression(const std::string &expression, const char *member) {
    std::string problem;
    auto lookup = [&](StringRef name, std::optional<int64_t> index,
                      std::string &wrong) -> std::optional<int64_t> {
      const AttributeEntry *attribute = made->attribute(name);
      if (index && !made->input(name))
        wrong = "'" + name.str() + "' is no input";
      else if (!index && (!attribute || attribute->isFloat))
        wrong = "'" + name.str() + "' is no attribute of type int; sizes are NAME[AXIS]";
      return std::nullopt;
    };
    (void)evaluateSize(expression, lookup, problem);
    if (!problem.empty())
      fail("member '" + llvm::Twine(member) + "' has the expression '" + expression +
           "': " + problem);
  }

  FunctionEntry function(const json &entry, const char *member, bool isBackward) {
    FunctionEntry result;
    if (!entry.is_object()) {
      fail("member '" + llvm::Twine(member) + "' is no object");
      return result;
    }
    std::set<std::string> known = {"function", "numbers", "flops"};
    if (isBackward)
      known.insert({"inputs", "gradients"});
    checkMembers(entry, member, known);
    result.name = text(entry, member, "function");
    if (!result.name.empty() && !isFunctionName(result.name))
      fail("member '" + llvm::Twine(member) + "' has the function '" + result.name +
           "', which is no name in C++");
    result.numbers = texts(entry, member, "numbers", false);
    for (const std::string &number : result.numbers)
      if (const AttributeEntry *attribute = made->attribute(number);
          !attribute || !attribute->isFloat)
        checkExpression(number, member);
    result.flops = text(entry, member, "flops", false);
    if (!result.flops.empty())
      checkExpression(result.flops, member);
    if (isBackward)
      readOperands(entry, result);
    return result;
  }

  void readOperands(const json &entry, FunctionEntry &function) {
    const auto inputs = static_cast<int64_t>(made->inputs.size()),
               outputs = static_cast<int64_t>(made->outputs.size());
    for (const std::string &name : texts(entry, "backward", "inputs")) {
      StringRef word = name;
      const bool isGradient = word.consume_front("gradient of ");
      if (auto output = made->output(word))
        function.inputs.push_back(inputs + static_cast<int64_t>(*output) +
                                  (isGradient ? outputs : 0));
      else if (auto input = made->input(word); input && !isGradient)
        function.inputs.push_back(static_cast<int64_t>(*input));
      else
        fail("member 'backward.inputs' has '" + name + "'",
             "names of inputs and outputs, and 'gradient of OUTPUT'");
    }
    for (const std::string &name : texts(entry, "backward", "gradients"))
      if (auto input = made->input(name))
        function.gradients.push_back(static_cast<int64_t>(*input));
      else
        fail("member 'backward.gradients' has '" + name + "', which is no input");
    if (function.gradients.empty())
      fail("member 'backward' has a function that computes no gradient");
  }

  /// Each by one function.
  void checkGradients() {
    std::set<int64_t> computed;
    for (const FunctionEntry &function : made->backward)
      for (int64_t input : function.gradients)
        if (!computed.insert(input).second)
          fail("two backward functions compute the gradient of '" +
               made->inputs[static_cast<size_t>(input)].name + "'");
  }

  const std::string &path;
  StringRef target;
  Report &report;
  std::shared_ptr<Description> made = std::make_shared<Description>();
  std::set<std::string> names;
};

/// Imports one node.
class CustomNode {
public:
  CustomNode(const Description &of, nn::OnnxNode &node) : of(of), node(node) {}

  nn::OnnxResults import() {
    if (failed(readInputs()) || failed(checkAttributes()))
      return failure();
    SmallVector<Type> types;
    for (const OutputEntry &output : of.outputs) {
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
    for (const FunctionEntry &function : of.backward) {
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
        at.getStringAttr(of.library), forward->getAs<ArrayAttr>("numbers"),
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
    for (const std::string &name : node.attributeNames())
      if (!of.attribute(name))
        return node.error("attribute '" + name + "' is not in its manifest");
    for (const AttributeEntry &entry : of.attributes)
      if (!entry.byDefault && !node.hasAttribute(entry.name))
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
        return node.integer(name, static_cast<int64_t>(of.attribute(name)->byDefault.value_or(0)));
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

  FailureOr<RankedTensorType> typeOf(const OutputEntry &output) {
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
    Type element = elementTypeNamed(output.type, node.builder().op().getContext());
    if (auto input = of.input(output.type))
      element = nn::tensorType(inputs[*input]).getElementType();
    return RankedTensorType::get(shape, element);
  }

  /// The members of nn.custom that a function has.
  FailureOr<DictionaryAttr> describe(const FunctionEntry &function) {
    OpBuilder &at = node.builder().op();
    SmallVector<Attribute> numbers;
    for (const std::string &number : function.numbers) {
      if (const AttributeEntry *attribute = of.attribute(number); attribute && attribute->isFloat) {
        numbers.push_back(at.getF64FloatAttr(node.real(number, attribute->byDefault.value_or(0))));
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
    return at.getDictionaryAttr(
        {at.getNamedAttr("function", at.getStringAttr("::" + function.name)),
         at.getNamedAttr("numbers", at.getArrayAttr(numbers)),
         at.getNamedAttr("flops", at.getF64FloatAttr(static_cast<double>(*flops)))});
  }

  /// Integers have none.
  LogicalResult checkGradients(const FunctionEntry &function, ArrayRef<Type> results) {
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

  const Description &of;
  nn::OnnxNode &node;
  SmallVector<Value> inputs;
  int64_t elements = 0; // of the results
};

} // namespace

std::vector<CustomOperator> readCustomOperators(ArrayRef<std::string> manifests, StringRef target,
                                                Report &report) {
  std::vector<CustomOperator> operators;
  std::set<std::string> folders;
  for (const std::string &path : manifests) {
    CustomOperator about;
    std::shared_ptr<Description> description = ManifestReader(path, target, report).read(about);
    if (!description)
      continue;
    auto refuse = [&](const Twine &message) {
      (void)report.error(ExitCode::usage, Subject::ofOption("--operator", path),
                         "'" + about.qualifiedName() + "' " + message,
                         "a domain and a name of its own");
    };
    if (!folders.insert(about.folder).second) {
      refuse("is given twice");
      continue;
    }
    if (about.domain.empty() || about.domain == "ai.onnx" ||
        nn::findOnnxImporter(about.domain, about.name, INT64_MAX)) {
      refuse(about.domain.empty() || about.domain == "ai.onnx" ? "is in ONNX's own domain"
                                                               : "is an operator of trainc's");
      continue;
    }
    nn::OnnxRegistration(
        about.name, /*since=*/1,
        [description](nn::OnnxNode &node) { return CustomNode(*description, node).import(); },
        [description](unsigned input, ArrayRef<int64_t>) {
          return input < description->inputs.size() ? description->inputs[input].weight
                                                    : nn::OnnxWeight::none;
        },
        about.domain);
    operators.push_back(std::move(about));
  }
  return operators;
}

} // namespace trainc
