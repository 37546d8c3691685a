// SPDX-License-Identifier: Apache-2.0
//
// Versions, and names that must be one thing's own. Protobuf admits lists of anything.
#include "compiler/onnx/file/file_check.h"
#include "compiler/onnx/file/schema.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace trainc::reader {

constexpr int64_t kOldestIr = 3, kNewestIr = 14;

bool servesOpset(int64_t version) { return version >= kOldestOpset && version <= kNewestOpset; }

std::string whyNotStored(StringRef name) {
  if (name == "__metadata__")
    return "is a word of the format";
  if (name.contains('\0'))
    return "has a zero byte";
  if (!json::isUTF8(name))
    return "is not UTF-8";
  return "";
}

namespace {

class FileChecker {
public:
  FileChecker(const ModelFile &file, Report &report) : file(file), report(report) {}

  bool run() {
    size_t before = report.size();
    checkFormat();
    checkVersions(file.model(), "");
    checkFunctions();
    checkNames(file.graph().input(), "input");
    checkOutputs();
    checkNames(file.graph().initializer(), "initializer");
    if (file.graph().output().empty())
      fail("it has no outputs");
    for (const onnx::ValueInfoProto &output : file.graph().output())
      if (std::string why = whyNotStored(output.name()); !why.empty())
        (void)report.error(ExitCode::unsupportedModel, file.path(),
                           "output '" + output.name() +
                               "' cannot be stored under its name, which " + why);
    checkDefaults();
    checkBodies();
    return report.size() == before;
  }

private:
  void fail(const Twine &message) {
    (void)report.error(ExitCode::unreadableModel, file.path(), message);
  }

  void checkFormat() {
    int64_t ir = file.model().ir_version();
    if (ir < kOldestIr || ir > kNewestIr)
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "ONNX IR version " + Twine(ir) + " is not supported, only " +
                             Twine(kOldestIr) + " to " + Twine(kNewestIr));
  }

  template <typename Proto> void checkVersions(const Proto &proto, const std::string &where) {
    std::map<std::string, int64_t> versions;
    for (const auto &entry : proto.opset_import()) {
      const std::string &domain = entry.domain();
      auto [found, isNew] = versions.try_emplace(domain, entry.version());
      if (!isNew && found->second != entry.version())
        fail(where + "two versions of the operator set '" + (domain.empty() ? "ai.onnx" : domain) +
             "', " + Twine(found->second) + " and " + Twine(entry.version()));
      else if (isNew && domain.empty() && !servesOpset(entry.version()))
        (void)report.error(ExitCode::unsupportedModel, file.path(),
                           where + "operator set " + Twine(entry.version()) +
                               " is not supported, only " + Twine(kOldestOpset) + " to " +
                               Twine(kNewestOpset),
                           "export again with opset_version=20");
    }
  }

  void checkFunctions() {
    std::set<std::string> keys;
    for (const onnx::FunctionProto &function : file.model().functions()) {
      std::string name = "function '" + function.name() + "' of domain '" + function.domain() + "'";
      if (!keys.insert(functionKey(function)).second)
        fail(name + " is there twice");
    }
  }

  // ONNX lets a graph list a value several times, but what a run writes has one name each.
  void checkOutputs() {
    llvm::StringSet<> names;
    for (auto [i, output] : enumerate(file.graph().output()))
      if (output.name().empty())
        fail("output " + Twine(i) + " has no name");
      else if (!names.insert(output.name()).second)
        (void)report.error(ExitCode::unsupportedModel, file.path(),
                           "output '" + output.name() + "' is listed twice, which is not supported",
                           "a file that lists it once");
  }

  template <typename List> void checkNames(const List &list, const char *kind) {
    llvm::StringSet<> names;
    for (int i = 0; i < list.size(); ++i)
      if (list[i].name().empty())
        fail(Twine(kind) + " " + Twine(i) + " has no name");
      else if (!names.insert(list[i].name()).second)
        fail(Twine(kind) + " '" + list[i].name() +
             (StringRef(kind) == "initializer" ? "' is there twice" : "' is listed twice"));
  }

  using Names = llvm::StringSet<>;

  static void add(const std::string &name, Names &visible, Names &own) {
    if (visible.insert(name).second)
      own.insert(name);
  }

  // What a node in the body of a loop or a branch makes has a name of its own, also among the
  // values around that are made before it.
  void checkBodies() {
    Names visible, own;
    for (const auto &input : file.graph().input())
      add(input.name(), visible, own);
    for (const auto &tensor : file.graph().initializer())
      add(tensor.name(), visible, own);
    checkNodes(file.graph().node(), visible, own, "");
    for (const onnx::FunctionProto &function : file.model().functions()) {
      Names visible, own;
      for (const std::string &input : function.input())
        add(input, visible, own);
      checkNodes(function.node(), visible, own, "");
    }
  }

  // `own`: of the `visible` names, those of the graph itself; `where`: whose body it is.
  template <typename Nodes>
  void checkNodes(const Nodes &nodes, Names &visible, Names &own, const std::string &where) {
    for (const onnx::NodeProto &node : nodes) {
      for (const onnx::AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          checkBody(attribute.g(), visible,
                    "'" + (node.name().empty() ? node.op_type() : node.name()) + "' (" +
                        node.op_type() + ")");
      for (const std::string &output : node.output()) {
        if (!where.empty() && visible.contains(output) && !own.contains(output))
          return fail("the body of node " + where + " defines value '" + output +
                      "', which the graph around it has already");
        if (!output.empty())
          add(output, visible, own);
      }
    }
  }

  void checkBody(const onnx::GraphProto &body, Names &visible, const std::string &where) {
    Names own;
    for (const auto &input : body.input())
      add(input.name(), visible, own);
    for (const auto &tensor : body.initializer())
      add(tensor.name(), visible, own);
    checkNodes(body.node(), visible, own, where);
    for (const auto &name : own)
      visible.erase(name.getKey());
  }

  static std::string textOf(ArrayRef<int64_t> sizes) {
    return "[" + join(map_range(sizes, [](int64_t size) { return std::to_string(size); }), ", ") +
           "]";
  }

  // Older files list initializers among the inputs, newer ones as inputs that have a default.
  void checkDefaults() {
    StringMap<const onnx::TypeProto *> inputs;
    for (const onnx::ValueInfoProto &input : file.graph().input())
      inputs[input.name()] = &input.type();
    for (int i = 0; i < file.graph().initializer_size(); ++i)
      if (const onnx::TypeProto *type = inputs.lookup(file.graph().initializer(i).name()))
        checkDefault(file.initializer(i), *type);
  }

  void checkDefault(const TensorBytes &tensor, const onnx::TypeProto &type) {
    std::string subject = "initializer '" + tensor.name + "' is ";
    if (!type.has_tensor_type())
      return fail(subject + "a tensor, but the input of that name is none");
    const auto &declared = type.tensor_type();
    if (declared.elem_type() != tensor.dataType)
      return fail(subject + elementName(tensor.dataType) + ", but the input of that name " +
                  elementName(declared.elem_type()));
    if (!declared.has_shape())
      return;
    SmallVector<int64_t> sizes;
    for (const auto &dimension : declared.shape().dim())
      sizes.push_back(dimension.dim_value());
    bool fits = sizes.size() == tensor.shape.size();
    for (size_t i = 0; fits && i < sizes.size(); ++i)
      fits = sizes[i] <= 0 || sizes[i] == tensor.shape[i];
    if (!fits)
      fail(subject + textOf(tensor.shape) + ", but the input of that name " + textOf(sizes));
  }

  const ModelFile &file;
  Report &report;
};

} // namespace

bool checkFile(const ModelFile &file, Report &report) { return FileChecker(file, report).run(); }

} // namespace trainc::reader
