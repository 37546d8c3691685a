// SPDX-License-Identifier: Apache-2.0
//
// Reads a manifest and checks it as far as it goes without a model.
#include "compiler/onnx/import/operator_manifest.h"

#include "compiler/onnx/graph/size_expression.h"
#include "runtime/files/json_names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace mlir;
using Json = nlohmann::ordered_json;

namespace trainc {

Type manifestType(StringRef word, MLIRContext *context) {
  return llvm::StringSwitch<Type>(word)
      .Case("float32", Float32Type::get(context))
      .Case("float64", Float64Type::get(context))
      .Case("int32", IntegerType::get(context, 32))
      .Case("int64", IntegerType::get(context, 64))
      .Case("bool", IntegerType::get(context, 1))
      .Default(Type());
}

template <typename Entry>
static std::optional<size_t> indexNamed(const std::vector<Entry> &entries, StringRef name) {
  auto found = llvm::find_if(entries, [&](const Entry &entry) { return entry.name == name; });
  return found == entries.end() ? std::nullopt : std::optional<size_t>(found - entries.begin());
}

std::optional<size_t> OperatorManifest::input(StringRef name) const {
  return indexNamed(inputs, name);
}
std::optional<size_t> OperatorManifest::output(StringRef name) const {
  return indexNamed(outputs, name);
}
const ManifestAttribute *OperatorManifest::attribute(StringRef name) const {
  auto found = indexNamed(attributes, name);
  return found ? &attributes[*found] : nullptr;
}

namespace {

constexpr uint64_t kLargestManifest = 1 << 20; // bytes
constexpr int kDeepestManifest = 4;

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

/// What a manifest says, or messages that name the member.
class ManifestReader {
public:
  ManifestReader(const std::string &path, StringRef target, Report &report)
      : path(path), target(target), report(report) {}

  std::shared_ptr<OperatorManifest> read() {
    std::optional<Json> document = parse();
    if (!document)
      return nullptr;
    const Json &top = *document;
    const size_t before = report.size();
    checkMembers(top, "",
                 {"operator", "domain", "header", "sources", "inputs", "attributes", "outputs",
                  "forward", "backward"});
    made->name = text(top, "", "operator");
    made->domain = text(top, "", "domain");
    if (!made->name.empty() && !isIdentifier(made->name))
      fail("member 'operator' is '" + made->name + "', which is not a name of an operator");
    std::string folder = made->domain + "." + made->name;
    for (char &c : folder)
      c = llvm::isAlnum(c) || c == '.' || c == '_' || c == '-' ? c : '_';
    made->folder = "operators/" + folder;
    readFiles(top);
    readInputs(top);
    readAttributes(top);
    readOutputs(top);
    if (top.contains("forward"))
      made->forward = function(top["forward"], "forward", /*isBackward=*/false);
    else
      fail("has no member 'forward', the function that computes the outputs");
    for (const Json &entry : list(top, "", "backward", /*isNeeded=*/false))
      made->backward.push_back(function(entry, "backward", /*isBackward=*/true));
    checkGradients();
    if (report.size() != before || failed(readMeaning(top)))
      return nullptr;
    return made;
  }

private:
  void fail(const llvm::Twine &message, const llvm::Twine &advice = "docs/custom_operators.md") {
    (void)report.error(ExitCode::usage, Subject::ofOption("--operator", path), message, advice);
  }

  std::optional<Json> parse() {
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
                                                : "is not a regular file",
           "the path of a manifest");
      return std::nullopt;
    }
    std::string twice;
    Json document =
        bounded_json<Json>((*file)->getBuffer().str(), kDeepestManifest, watch_names<Json>(twice));
    if (!twice.empty()) {
      fail("has member '" + twice + "' twice in one object", "each member once");
      return std::nullopt;
    }
    if (document.is_object())
      return document;
    fail("is not a manifest: a JSON object is expected, of values no deeper than " +
         llvm::Twine(kDeepestManifest));
    return std::nullopt;
  }

  static std::string named(StringRef where, StringRef member) {
    return ("'" + (where.empty() ? "" : where + ".") + member + "'").str();
  }

  void checkMembers(const Json &object, StringRef where, std::set<std::string> known) {
    for (auto &[name, value] : object.items())
      if (!known.count(name))
        fail("unknown member " + named(where, name), "one of " + llvm::join(known, ", "));
  }

  std::string text(const Json &object, StringRef where, const char *member) {
    if (object.contains(member) && object[member].is_string()) {
      std::string found = object[member].get<std::string>();
      if (found.empty())
        fail("member " + named(where, member) + " is empty");
      return found;
    }
    if (object.contains(member))
      fail("member " + named(where, member) + " is not text");
    else
      fail("has no member " + named(where, member));
    return "";
  }

  std::vector<Json> list(const Json &object, StringRef where, const char *member,
                         bool isNeeded = true) {
    if (object.contains(member) && object[member].is_array())
      return {object[member].begin(), object[member].end()};
    if (object.contains(member))
      fail("member " + named(where, member) + " is not a list");
    else if (isNeeded)
      fail("has no member " + named(where, member));
    return {};
  }

  std::vector<std::string> texts(const Json &object, StringRef where, const char *member,
                                 bool isNeeded = true) {
    std::vector<std::string> result;
    for (const Json &entry : list(object, where, member, isNeeded))
      if (entry.is_string())
        result.push_back(entry.get<std::string>());
      else if (entry.is_number_integer())
        result.push_back(entry.dump());
      else
        fail("member " + named(where, member) + " has an entry that is not text: " + entry.dump());
    return result;
  }

  /// The header, and what is copied beside it or compiled. The other target's files are looked at,
  /// too: a run may go on there.
  void readFiles(const Json &top) {
    const std::string header = text(top, "", "header");
    made->header = made->folder + "/" + llvm::sys::path::filename(header).str();
    if (!header.empty() && !isIncluded(header))
      fail("names the header '" + header + "', whose ending does not say that it is one",
           ".h, .hpp, .cuh or .inc");
    const bool hasSources = top.contains("sources") && top["sources"].is_object();
    if (hasSources)
      checkMembers(top["sources"], "sources", {"cpu", "cuda"});
    else
      fail("has no object 'sources' with a list for each target, cpu or cuda");
    bool isCompiled = false;
    for (const char *of : {"cpu", "cuda"}) {
      std::vector<std::string> names = {header};
      if (hasSources)
        llvm::append_range(names, texts(top["sources"], "sources", of, false));
      std::set<std::string> there;
      for (const std::string &name : names) {
        if (name.empty() || (of != target && name == header))
          continue; // said already
        llvm::SmallString<128> file(llvm::sys::path::parent_path(path));
        llvm::sys::path::append(file, name);
        if (llvm::sys::path::is_absolute(name))
          file = name;
        checkFile(name, file, of);
        if (!there.insert(llvm::sys::path::filename(name).str()).second)
          fail("has two files named '" + llvm::sys::path::filename(name) + "' for " + of +
                   ", which one folder of the output cannot hold",
               "a name of its own for each");
        isCompiled |= of == target && !isIncluded(name);
        (of == target ? made->files : otherFiles).push_back(file.str().str());
      }
    }
    if (!isCompiled)
      fail("has no sources for --target " + target,
           "a .cpp" + llvm::Twine(target == "cuda" ? " or .cu" : "") +
               " file in the member 'sources." + target + "'");
  }

  static bool isIncluded(StringRef name) {
    return llvm::is_contained({".h", ".hpp", ".cuh", ".inc"}, llvm::sys::path::extension(name));
  }

  void checkFile(StringRef name, StringRef file, StringRef of) {
    const StringRef ending = llvm::sys::path::extension(name);
    const bool isCuda = of == "cuda";
    if (ending != ".cpp" && !(ending == ".cu" && isCuda) && !isIncluded(name))
      fail("names '" + name +
               "', whose ending says neither what compiles it nor that it is included",
           ".cpp" + llvm::Twine(isCuda ? " or .cu" : "") +
               " for what is compiled; .h, .hpp, .cuh or .inc for what that includes");
    else if (!llvm::all_of(llvm::sys::path::filename(name), [](char c) {
               return llvm::isAlnum(c) || StringRef("._-+").contains(c);
             })) // it becomes part of emitted code and of the build's files
      fail("names '" + name + "', which has other characters than letters, digits and . _ - +",
           "a plain name");
    else if (!llvm::sys::fs::is_regular_file(file))
      fail("names '" + name + "', which is not a regular file", "paths from the manifest's folder");
  }

  /// What a run may not change under its checkpoints, on either target.
  LogicalResult readMeaning(const Json &top) {
    Json described = top;
    described.erase("header");
    described.erase("sources");
    described["forward"].erase("flops");
    if (described.contains("backward"))
      for (Json &function : described["backward"])
        function.erase("flops");
    made->meaning = described.dump(-1, ' ', true, Json::error_handler_t::replace);
    std::set<std::string> files(made->files.begin(), made->files.end());
    files.insert(otherFiles.begin(), otherFiles.end());
    for (const std::string &file : files) {
      auto text = llvm::MemoryBuffer::getFile(file);
      if (!text) {
        fail("names '" + file + "', which cannot be read: " + text.getError().message(),
             "a file that can");
        return failure();
      }
      made->meaning +=
          "\n" + llvm::sys::path::filename(file).str() + "\n" + (*text)->getBuffer().str();
    }
    return success();
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

  void readInputs(const Json &top) {
    for (const Json &entry : list(top, "", "inputs")) {
      ManifestInput input;
      if (entry.is_object()) {
        checkMembers(entry, "inputs", {"name", "weight"});
        input.name = text(entry, "inputs", "name");
        if (entry.contains("weight")) {
          const std::string weight = text(entry, "inputs", "weight");
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

  void readAttributes(const Json &top) {
    if (!top.contains("attributes"))
      return;
    if (!top["attributes"].is_object())
      return fail("member 'attributes' is not an object");
    for (auto &[name, entry] : top["attributes"].items()) {
      ManifestAttribute attribute;
      attribute.name = newName(name, "attributes");
      if (!entry.is_object()) {
        fail("attribute '" + name +
             "' is not an object such as {\"type\": \"float\", \"default\": 1}");
        continue;
      }
      checkMembers(entry, "attributes." + name, {"type", "default"});
      const std::string type = text(entry, "attributes." + name, "type");
      attribute.isFloat = type == "float";
      if (type != "float" && type != "int")
        fail("attribute '" + name + "' has the type '" + type + "'", "int or float");
      attribute.hasDefault = entry.contains("default");
      if (attribute.hasDefault)
        readDefault(entry["default"], attribute);
      made->attributes.push_back(attribute);
    }
  }

  void readDefault(const Json &value, ManifestAttribute &attribute) {
    const bool isBeyond = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    if (attribute.isFloat && value.is_number())
      attribute.real = value.get<double>();
    else if (!attribute.isFloat && value.is_number_integer() && !isBeyond)
      attribute.integer = value.get<int64_t>();
    else
      fail("the default of attribute '" + attribute.name + "' is " + value.dump() +
           ", which is not a " + (attribute.isFloat ? "number" : "whole number of 64 bits"));
  }

  void readOutputs(const Json &top) {
    for (const Json &entry : list(top, "", "outputs")) {
      if (!entry.is_object()) {
        fail("member 'outputs' has an entry that is not an object");
        continue;
      }
      checkMembers(entry, "outputs", {"name", "shape", "type"});
      ManifestOutput output{newName(text(entry, "outputs", "name"), "outputs"), "", {}, ""};
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
      if (!made->input(output.type) && !manifestType(output.type, &context))
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
      const ManifestAttribute *attribute = made->attribute(name);
      if (index && !made->input(name))
        wrong = "'" + name.str() + "' is no input";
      else if (!index && (!attribute || attribute->isFloat))
        wrong = "'" + name.str() + "' is not an attribute of type int; sizes are NAME[AXIS]";
      return std::nullopt;
    };
    (void)evaluateSize(expression, lookup, problem);
    if (!problem.empty())
      fail("member '" + llvm::Twine(member) + "' has the expression '" + expression +
           "': " + problem);
  }

  ManifestFunction function(const Json &entry, const char *member, bool isBackward) {
    ManifestFunction result;
    if (!entry.is_object()) {
      fail("member '" + llvm::Twine(member) + "' is not an object");
      return result;
    }
    std::set<std::string> known = {"function", "numbers", "flops"};
    if (isBackward)
      known.insert({"inputs", "gradients"});
    checkMembers(entry, member, known);
    result.name = text(entry, member, "function");
    if (!result.name.empty() && !isFunctionName(result.name))
      fail("member '" + llvm::Twine(member) + "' has the function '" + result.name +
           "', which is not a name in C++");
    result.numbers = texts(entry, member, "numbers", false);
    for (const std::string &number : result.numbers)
      if (const ManifestAttribute *attribute = made->attribute(number);
          !attribute || !attribute->isFloat)
        checkExpression(number, member);
    if (entry.contains("flops"))
      checkExpression(result.flops = text(entry, member, "flops"), member);
    if (isBackward)
      readOperands(entry, result);
    return result;
  }

  void readOperands(const Json &entry, ManifestFunction &function) {
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
    for (const ManifestFunction &function : made->backward)
      for (int64_t input : function.gradients)
        if (!computed.insert(input).second)
          fail("two backward functions compute the gradient of '" +
               made->inputs[static_cast<size_t>(input)].name + "'");
  }

  const std::string &path;
  StringRef target;
  Report &report;
  std::shared_ptr<OperatorManifest> made = std::make_shared<OperatorManifest>();
  std::set<std::string> names;
  std::vector<std::string> otherFiles; // of the other target
};

} // namespace

std::shared_ptr<const OperatorManifest> readOperatorManifest(const std::string &path,
                                                             StringRef target, Report &report) {
  return ManifestReader(path, target, report).read();
}

} // namespace trainc
