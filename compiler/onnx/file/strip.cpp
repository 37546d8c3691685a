// SPDX-License-Identifier: Apache-2.0
//
// A walk over ModelProto, GraphProto and TensorProto by field number. Only the small rest goes
// through the protobuf library, so a model of any size costs the heap of its graph alone.
#include "compiler/onnx/file/strip.h"
#include "compiler/onnx/file/wire.h"
#include "llvm/ADT/StringRef.h"

namespace trainc::reader {

// Field numbers of onnx.proto.
constexpr int kModelGraph = 7;
constexpr int kGraphNode = 1;
constexpr int kGraphInitializer = 5;
constexpr int kNodeAttribute = 5;
constexpr int kAttributeTensor = 5;
constexpr int kEntryKey = 1;
constexpr int kEntryValue = 2;
constexpr int kRawData = 9;
constexpr int kStringData = 6;

static void append(std::string &out, llvm::ArrayRef<char> bytes) {
  out.append(bytes.data(), bytes.size());
}

// How one value of float, int32, string, int64, double or uint64 data is written where it stands
// alone; nothing for other fields.
static std::optional<Wire> wireOfData(int number) {
  switch (number) {
  case 4:
    return Wire::fixed32;
  case 5:
  case 7:
  case 11:
    return Wire::varint;
  case kStringData:
    return Wire::bytes;
  case 10:
    return Wire::fixed64;
  default:
    return std::nullopt;
  }
}

static void addPiece(Payload &payload, const Field &field) {
  if (field.contents.empty() && field.number != kStringData) // some writers write every field
    return;
  if (payload.typed.empty() || payload.typed.back().first != field.number)
    payload.typed.push_back({field.number, {}});
  auto &pieces = payload.typed.back().second;
  if (field.wire == Wire::bytes) {
    pieces.push_back({field.contents, ""});
    return;
  }
  if (pieces.empty() || pieces.back().gathered.empty())
    pieces.emplace_back();
  append(pieces.back().gathered, field.contents);
}

bool stripTensor(llvm::ArrayRef<char> bytes, std::string &out, Payload &payload) {
  WireReader reader(bytes);
  Field field;
  while (reader.next(field)) {
    if (field.number == kRawData && field.wire == Wire::bytes) {
      payload.raw = field.contents;
    } else if (auto wire = wireOfData(field.number)) {
      if (field.wire != Wire::bytes && field.wire != *wire)
        return false;
      addPiece(payload, field);
    } else {
      append(out, field.whole);
    }
  }
  return !reader.malformed();
}

static bool isOfPyTorch(llvm::StringRef line) {
  return line.contains("-packages/torch/") || line.contains("/torch/nn/");
}

std::string ownLine(llvm::StringRef trace) {
  llvm::StringRef own;
  while (!trace.empty()) {
    auto [line, rest] = trace.split('\n');
    line = line.trim();
    if (line.consume_front("File \"") && !isOfPyTorch(line))
      own = line;
    trace = rest;
  }
  if (own.empty())
    return "";
  auto [path, place] = own.split('"');
  return ("File \"" + path.substr(path.find_last_of("/\\") + 1) + "\"" + place).str();
}

std::pair<llvm::StringRef, llvm::StringRef> metadataEntry(llvm::ArrayRef<char> bytes) {
  WireReader reader(bytes);
  Field field;
  llvm::StringRef key, value;
  while (reader.next(field))
    if (field.wire == Wire::bytes && (field.number == kEntryKey || field.number == kEntryValue))
      (field.number == kEntryKey ? key : value) = {field.contents.data(), field.contents.size()};
  return {key, value};
}

// A node's metadata. Of a stack trace, which may be most of the file, one line is kept.
static void stripMetadata(const Field &entry, std::string &out) {
  auto [key, value] = metadataEntry(entry.contents);
  if (!key.ends_with("stack_trace"))
    return append(out, entry.whole);
  const std::string line = ownLine(value);
  std::string kept;
  appendBytesField(kept, kEntryKey, {key.data(), key.size()});
  appendBytesField(kept, kEntryValue, {line.data(), line.size()});
  if (!line.empty())
    appendBytesField(out, entry.number, {kept.data(), kept.size()});
}

constexpr size_t kCopied = 4096; // bytes; values in nodes that need not stay in the file

// False where nothing was left out.
static bool stripTensorInNode(llvm::ArrayRef<char> bytes, std::string &out, Payloads &payloads) {
  Payload payload;
  if (bytes.size() <= kCopied || !stripTensor(bytes, out, payload) || !payload.typed.empty() ||
      payload.raw.size() <= kCopied)
    return false;
  appendVarintField(out, kValuesNumber, payloads.inNodes.size());
  payloads.inNodes.push_back(payload.raw);
  return true;
}

static bool stripAttribute(llvm::ArrayRef<char> bytes, std::string &out, Payloads &payloads) {
  WireReader reader(bytes);
  Field field;
  while (reader.next(field)) {
    std::string tensor;
    if (field.number == kAttributeTensor && field.wire == Wire::bytes &&
        stripTensorInNode(field.contents, tensor, payloads))
      appendBytesField(out, field.number, {tensor.data(), tensor.size()});
    else
      append(out, field.whole);
  }
  return !reader.malformed();
}

static bool stripNode(llvm::ArrayRef<char> bytes, std::string &out, Payloads &payloads) {
  WireReader reader(bytes);
  Field field;
  while (reader.next(field)) {
    if (field.number == kNodeAttribute && field.wire == Wire::bytes &&
        field.contents.size() > kCopied) {
      std::string attribute;
      if (!stripAttribute(field.contents, attribute, payloads))
        return false;
      appendBytesField(out, field.number, {attribute.data(), attribute.size()});
    } else if (field.number == kNodeMetadata && field.wire == Wire::bytes) {
      stripMetadata(field, out);
    } else {
      append(out, field.whole);
    }
  }
  return !reader.malformed();
}

static bool stripGraph(llvm::ArrayRef<char> bytes, std::string &out, Payloads &payloads) {
  WireReader reader(bytes);
  Field field;
  std::string part;
  while (reader.next(field)) {
    bool isNode = field.number == kGraphNode && field.wire == Wire::bytes;
    bool isInitializer = field.number == kGraphInitializer && field.wire == Wire::bytes;
    if (!isNode && !isInitializer) {
      append(out, field.whole);
      continue;
    }
    part.clear();
    if (isInitializer)
      payloads.initializers.emplace_back();
    if (isNode ? !stripNode(field.contents, part, payloads)
               : !stripTensor(field.contents, part, payloads.initializers.back()))
      return false;
    appendBytesField(out, field.number, {part.data(), part.size()});
  }
  return !reader.malformed();
}

bool stripModel(llvm::ArrayRef<char> bytes, std::string &out, Payloads &payloads) {
  WireReader reader(bytes);
  Field field;
  while (reader.next(field)) {
    if (field.number != kModelGraph || field.wire != Wire::bytes) {
      append(out, field.whole);
      continue;
    }
    std::string graph;
    if (!stripGraph(field.contents, graph, payloads))
      return false;
    appendBytesField(out, field.number, {graph.data(), graph.size()});
  }
  return !reader.malformed();
}

} // namespace trainc::reader
