// SPDX-License-Identifier: Apache-2.0
//
// What exporters write besides the graph: metadata entries, and names of nodes made readable.
#include "compiler/onnx/file/strip.h"
#include "compiler/onnx/file/wire.h"
#include "compiler/onnx/graph/graph.h"
#include "llvm/ADT/StringExtras.h"
#include <google/protobuf/unknown_field_set.h>

using namespace llvm;

namespace trainc::reader {

SmallVector<StringRef> newerField(const google::protobuf::Message &message, int number) {
  SmallVector<StringRef> result;
  const auto &unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i)
    if (unknown.field(i).number() == number &&
        unknown.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      result.push_back(unknown.field(i).length_delimited());
  return result;
}

std::string metadata(const google::protobuf::Message &message, int fieldNumber, StringRef key) {
  for (StringRef bytes : newerField(message, fieldNumber))
    if (auto [name, value] = metadataEntry({bytes.data(), bytes.size()}); name == key)
      return value.str();
  return "";
}

void addMetadata(google::protobuf::Message &message, int fieldNumber, StringRef key,
                 StringRef value) {
  std::string entry;
  appendBytesField(entry, 1, {key.data(), key.size()});
  appendBytesField(entry, 2, {value.data(), value.size()});
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(fieldNumber, entry);
}

void describeInitializer(onnx::GraphProto &graph, const TensorBytes &tensor, StringRef key,
                         StringRef value) {
  for (onnx::ValueInfoProto &info : *graph.mutable_value_info())
    if (tensor.name == info.name())
      return addMetadata(info, kValueMetadata, key, value);
  onnx::ValueInfoProto &info = *graph.add_value_info();
  describe(info, tensor.name, tensor.dataType, tensor.shape);
  addMetadata(info, kValueMetadata, key, value);
}

std::vector<std::string> quotedStrings(StringRef text) {
  std::vector<std::string> result;
  while (true) {
    size_t open = text.find_first_of("'\"");
    if (open == StringRef::npos)
      return result;
    char quote = text[open];
    size_t close = text.find(quote, open + 1);
    if (close == StringRef::npos)
      return result;
    result.push_back(text.slice(open + 1, close).str());
    text = text.drop_front(close + 1);
  }
}

std::string snakeCase(StringRef opType) {
  if (opType == "MatMul") // as everywhere else in this project
    return "matmul";
  std::string result;
  for (size_t i = 0; i < opType.size(); ++i) {
    if (i && isUpper(opType[i]) && isLower(opType[i - 1]))
      result += '_';
    result += toLower(opType[i]);
  }
  return result;
}

// Names that PyTorch invents for values outside any module.
static bool isNoModule(StringRef scope) { return scope.starts_with("_empty_nn_module_stack"); }

static std::vector<std::string> scopesOf(const GraphNode &node) {
  return quotedStrings(metadata(*node.proto, kNodeMetadata, "pkg.torch.onnx.name_scopes"));
}

std::string programOperation(const GraphNode &node) {
  std::vector<std::string> scopes = scopesOf(node);
  return scopes.empty() ? "" : scopes.back();
}

std::string sourceLine(const GraphNode &node) {
  const std::string line =
      ownLine(metadata(*node.proto, kNodeMetadata, "pkg.torch.onnx.stack_trace"));
  auto [file, place] = StringRef(line).split("\", line "); // File "model.py", line 35, in forward
  file.consume_front("File \"");
  return place.empty() ? "" : (file + ":" + place.take_while(isDigit)).str();
}

std::optional<std::string> modulePath(StringRef nodeName) {
  if (!nodeName.contains('/'))
    return std::nullopt;
  SmallVector<StringRef> parts;
  nodeName.split(parts, '/', -1, /*KeepEmpty=*/false);
  if (!parts.empty())
    parts.pop_back();
  return join(parts, ".");
}

void nameNode(GraphNode &node) {
  node.kind = snakeCase(node.opType());
  std::vector<std::string> scopes = scopesOf(node);
  StringRef name = node.proto->name();
  if (scopes.size() >= 2) { // modules from the root to the innermost, then the operation
    const std::string &module = scopes[scopes.size() - 2];
    node.path = isNoModule(module) ? "" : module;
  } else if (std::optional<std::string> path = modulePath(name)) {
    node.path = std::move(path);
  } else if (!name.empty() && !name.starts_with("node_")) {
    node.kind = name.str();
  }
}

} // namespace trainc::reader
