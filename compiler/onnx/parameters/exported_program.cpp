// SPDX-License-Identifier: Apache-2.0
//
// Reads what PyTorch's exporter writes into metadata entries. The texts are those that torch.fx
// prints; what does not look like them is taken as absent.
#include "compiler/onnx/parameters/exported_program.h"
#include "compiler/onnx/file/wire.h"
#include "compiler/onnx/graph/graph.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace trainc::reader {

constexpr char kSignature[] = "pkg.torch.export.ExportedProgram.graph_signature";

static std::optional<ProgramCall> readCall(const onnx::NodeProto &node);

static StringRef firstOutput(const onnx::NodeProto &node) {
  auto found = llvm::find_if(node.output(), [](const std::string &name) { return !name.empty(); });
  return found == node.output().end() ? StringRef() : StringRef(*found);
}

ExportedProgram::ExportedProgram(const ModelFile &file) {
  std::string signature = metadata(file.graph(), kGraphMetadata, kSignature);
  recorded = !signature.empty();
  readSignature(signature);
  StringMap<const onnx::ValueInfoProto *> described;
  for (const onnx::ValueInfoProto &value : file.graph().value_info())
    described[value.name()] = &value;
  for (const onnx::TensorProto &tensor : file.graph().initializer()) {
    const onnx::ValueInfoProto *info = described.lookup(tensor.name());
    auto read = [&](StringRef key) {
      std::string value = metadata(tensor, kTensorMetadata, key);
      return !value.empty() || !info ? value : metadata(*info, kValueMetadata, key);
    };
    Record record{read(kKindKey), quotedStrings(read(kSourcesKey))};
    kinds |= !record.kind.empty();
    if (record.kind == "PARAMETER" && known.insert(tensor.name()).second)
      targets.push_back(tensor.name());
    records[tensor.name()] = std::move(record);
  }
  recorded |= kinds;
  readOwnRecord(file);
  for (const onnx::NodeProto &node : file.graph().node())
    if (std::optional<ProgramCall> call = readCall(node))
      calls[firstOutput(node)] = std::move(*call);
}

// What python/trainc/export.py writes. A record that is damaged is none.
void ExportedProgram::readOwnRecord(const ModelFile &file) {
  for (const onnx::StringStringEntryProto &entry : file.model().metadata_props()) {
    if (entry.key() != "trainc.export")
      continue;
    Expected<json::Value> record = json::parse(entry.value());
    if (!record) {
      consumeError(record.takeError());
      return;
    }
    const json::Object *object = record->getAsObject();
    const json::Array *parameters = object ? object->getArray("parameters") : nullptr;
    ownExport = recorded && parameters && object->getInteger("version") == 1;
    if (!ownExport)
      return;
    for (const json::Value &one : *parameters) {
      const json::Object *parameter = one.getAsObject();
      const json::Array *names = parameter ? parameter->getArray("names") : nullptr;
      if (!names)
        continue;
      const bool isTrained = parameter->getBoolean("requires_grad").value_or(true);
      std::vector<std::string> all;
      for (const json::Value &name : *names)
        all.push_back(name.getAsString().value_or("").str());
      for (const std::string &name : all) {
        if (!isTrained)
          frozen.insert(name);
        if (all.size() > 1)
          ownNames[name] = all;
      }
    }
  }
}

// Lines such as `p_wte_weight: PARAMETER target='wte.weight'`.
void ExportedProgram::readSignature(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    std::vector<std::string> quoted = quotedStrings(line);
    StringRef name = line.split(':').first.trim();
    if (line.contains(": USER_OUTPUT"))
      results.push_back(name.str());
    else if (line.contains(": BUFFER_MUTATION ") && !quoted.empty())
      changes.emplace_back(quoted[0], name.str());
    else if (!line.contains("_MUTATION"))
      placeholders.insert(name);
    if ((line.contains(": BUFFER ") || line.contains(": CONSTANT_TENSOR ")) && !quoted.empty()) {
      buffers[name] = quoted[0];
      bufferNames.insert(quoted[0]);
    }
    if (!line.contains(": PARAMETER ") || quoted.empty())
      continue;
    byPlaceholder[name] = quoted[0];
    if (known.insert(quoted[0]).second)
      targets.push_back(quoted[0]);
  }
}

bool ProgramCall::isBatchNorm() const {
  return is("aten.batch_norm") || is("aten.native_batch_norm") ||
         is("aten._native_batch_norm_legit") || is("aten._native_batch_norm_legit_functional") ||
         is("aten._native_batch_norm_legit_no_training");
}

StringRef ExportedProgram::parameterAt(StringRef placeholder) const {
  auto found = byPlaceholder.find(placeholder);
  return found == byPlaceholder.end() ? StringRef() : StringRef(found->second);
}

StringRef ExportedProgram::bufferAt(StringRef placeholder) const {
  auto found = buffers.find(placeholder);
  return found == buffers.end() ? StringRef() : StringRef(found->second);
}

std::vector<std::string> ExportedProgram::parametersOf(const ProgramCall &call) const {
  std::vector<std::string> result;
  for (const std::string &reference : call.references)
    if (StringRef target = parameterAt(reference); !target.empty() && !is_contained(result, target))
      result.push_back(target.str());
  return result;
}

const ProgramCall *ExportedProgram::callOf(const onnx::NodeProto &node) const {
  auto found = calls.find(firstOutput(node));
  return found == calls.end() ? nullptr : &found->second;
}

StringRef ExportedProgram::kindOf(StringRef initializer) const {
  if (recorded && !kinds) // an exporter that wrote the signature alone
    return isParameter(initializer) ? "PARAMETER" : "";
  auto found = records.find(initializer);
  return found == records.end() ? StringRef() : StringRef(found->second.kind);
}

ArrayRef<std::string> ExportedProgram::sourcesOf(StringRef initializer) const {
  auto found = records.find(initializer);
  return found == records.end() ? ArrayRef<std::string>() : ArrayRef(found->second.sources);
}

void ExportedProgram::addKind(StringRef initializer, StringRef kind) {
  records[initializer].kind = kind;
}

void ExportedProgram::addSources(StringRef initializer, std::vector<std::string> sources) {
  records[initializer].sources = std::move(sources);
}

// Up to the bracket that closes the one before `text`; splits at commas outside brackets.
static std::vector<std::string> argumentsIn(StringRef text) {
  std::vector<std::string> result;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    bool closes = StringRef(")]}").contains(text[at]);
    if ((depth == 0 && text[at] == ',') || (depth == 0 && closes)) {
      if (StringRef argument = text.slice(begin, at).trim(); !argument.empty())
        result.push_back(argument.str());
      begin = at + 1;
      if (closes)
        break;
    }
    depth += StringRef("([{").contains(text[at]) ? 1 : closes ? -1 : 0;
  }
  return result;
}

static std::optional<ProgramCall> readCall(const onnx::NodeProto &node) {
  std::string text = metadata(node, kNodeMetadata, "pkg.torch.onnx.fx_node");
  auto [result, rest] = StringRef(text).split(" = call_function[target=");
  auto [operation, arguments] = rest.split("](args = (");
  if (!result.consume_front("%") || arguments.empty())
    return std::nullopt;
  ProgramCall call;
  call.name = result.take_until([](char c) { return c == ' '; }).str();
  size_t users = 0;
  if (!result.split("[num_users=").second.split(']').first.getAsInteger(10, users))
    call.users = users;
  operation.consume_front("torch.ops.");
  call.operation = operation.str();
  call.arguments = argumentsIn(arguments);
  while (true) {
    arguments = arguments.split('%').second;
    if (arguments.empty())
      return call;
    call.references.push_back(
        arguments.take_while([](char c) { return isAlnum(c) || c == '_'; }).str());
  }
}

bool isDetach(const onnx::NodeProto &node) {
  if (!isOnnx(node, "Identity"))
    return false;
  std::optional<ProgramCall> call = readCall(node);
  return call && call->is("aten.detach");
}

std::optional<int64_t> paddingOf(const ProgramCall &call) {
  int64_t row = -1; // embedding(table, indices, padding)
  if (!call.is("aten.embedding") || call.argument(2).getAsInteger(10, row) || row < 0)
    return std::nullopt;
  return row;
}

std::optional<int64_t> paddingOf(const onnx::NodeProto &node) {
  std::optional<ProgramCall> call = isOnnx(node, "Gather") ? readCall(node) : std::nullopt;
  return call ? paddingOf(*call) : std::nullopt;
}

// clamp(input, min, max) has tensors in place of whole numbers: torch.export makes them.
std::optional<bool> clampsAtNumbers(const onnx::NodeProto &node) {
  std::optional<ProgramCall> call = readCall(node);
  if (!call ||
      !(call->is("aten.clamp") || call->is("aten.clamp_min") || call->is("aten.clamp_max")))
    return std::nullopt;
  return none_of(drop_begin(call->references),
                 [](StringRef bound) { return baseName(bound) != "scalar_tensor_default"; });
}

std::optional<std::string> moduleOf(const onnx::NodeProto &node) {
  std::vector<std::string> scopes =
      quotedStrings(metadata(node, kNodeMetadata, "pkg.torch.onnx.name_scopes"));
  if (scopes.size() < 2) // modules from the root to the innermost, then the operation
    return std::nullopt;
  return scopes[scopes.size() - 2];
}

} // namespace trainc::reader
