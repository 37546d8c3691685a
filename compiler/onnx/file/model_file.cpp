// SPDX-License-Identifier: Apache-2.0
//
// Opening a model and finding the values of its tensors, in whichever field they are.
#include "compiler/onnx/file/model_file.h"
#include "compiler/onnx/file/converted_tensors.h"
#include "compiler/onnx/file/half_model.h"
#include "compiler/onnx/file/initial_casts.h"
#include "compiler/onnx/file/schema.h"
#include "compiler/onnx/file/strip.h"
#include "compiler/onnx/file/wire.h"
#include "dialects/nn/onnx/onnx_types.h"
#include <climits>
#include <cstring>
#undef MAP_TYPE // of sys/mman.h, and a name of ONNX
#include <onnx/defs/parser.h>
#include <set>

using namespace llvm;

namespace trainc::reader {

std::unique_ptr<TensorBytes> ownTensor(std::string name, int32_t dataType, ArrayRef<int64_t> shape,
                                       std::string values) {
  auto tensor = std::make_unique<TensorBytes>();
  tensor->name = std::move(name);
  tensor->dataType = dataType;
  tensor->shape.assign(shape.begin(), shape.end());
  tensor->count = static_cast<int64_t>(values.size()) / elementBytes(dataType);
  tensor->storage = std::move(values);
  tensor->bytes = {tensor->storage.data(), tensor->storage.size()};
  return tensor;
}

void insertNode(onnx::GraphProto &graph, onnx::NodeProto node, int number) {
  auto &nodes = *graph.mutable_node();
  *nodes.Add() = std::move(node);
  for (int i = nodes.size() - 1; i > number; --i)
    nodes.SwapElements(i, i - 1);
}

static onnx::AttributeProto &addAttribute(onnx::NodeProto &node, StringRef name,
                                          onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name.str());
  attribute.set_type(type);
  return attribute;
}

void setInteger(onnx::NodeProto &node, StringRef name, int64_t number) {
  addAttribute(node, name, onnx::AttributeProto::INT).set_i(number);
}

void setIntegers(onnx::NodeProto &node, StringRef name, ArrayRef<int64_t> numbers) {
  onnx::AttributeProto &attribute = addAttribute(node, name, onnx::AttributeProto::INTS);
  attribute.mutable_ints()->Add(numbers.begin(), numbers.end());
}

void setTensor(onnx::NodeProto &node, StringRef name, const onnx::TensorProto &tensor) {
  *addAttribute(node, name, onnx::AttributeProto::TENSOR).mutable_t() = tensor;
}

void describe(onnx::ValueInfoProto &value, StringRef name, int32_t dataType,
              ArrayRef<int64_t> shape) {
  value.set_name(name.str());
  auto &type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(dataType);
  type.mutable_shape();
  for (int64_t size : shape)
    type.mutable_shape()->add_dim()->set_dim_value(size);
}

std::unique_ptr<TensorBytes> sharedCopy(const TensorBytes &values, std::string name) {
  auto copy = std::make_unique<TensorBytes>();
  copy->name = std::move(name);
  copy->dataType = values.dataType;
  copy->shape = values.shape;
  copy->count = values.count;
  copy->bytes = values.bytes;
  return copy;
}

using onnx::TensorProto;

int64_t elementBytes(int32_t dataType) {
  const nn::OnnxType *type = nn::findOnnxType(dataType);
  return type ? type->bits / 8 : 0;
}

int64_t valueBytes(int32_t dataType, int64_t count) {
  return isFourBits(dataType) ? (count + 1) / 2 : count * elementBytes(dataType);
}

bool isFloat(int32_t dataType) {
  const nn::OnnxType *type = nn::findOnnxType(dataType);
  return type && type->kind == nn::OnnxType::Kind::real;
}

bool isDouble(int32_t dataType) { return dataType == TensorProto::DOUBLE; }

std::string elementName(int32_t dataType) {
  if (TensorProto::DataType_IsValid(dataType))
    return StringRef(TensorProto::DataType_Name(static_cast<TensorProto::DataType>(dataType)))
        .lower();
  constexpr int32_t kFirst = 17; // newer than the schema
  constexpr StringRef kNewer[] = {
      "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",
      "int4",         "float4e2m1",     "float8e8m0", "uint2",          "int2"};
  if (dataType >= kFirst && dataType < kFirst + static_cast<int32_t>(std::size(kNewer)))
    return kNewer[dataType - kFirst].str();
  return "number " + std::to_string(dataType);
}

static const char *adviceOn(int32_t dataType) {
  const std::string type = elementName(dataType);
  StringRef name = type;
  return isHalf(dataType)              ? "an export in single precision: module.float() before it"
         : name == "string"            ? "the model behind what reads text"
         : name.starts_with("complex") ? "pairs of real numbers in their place"
         : name.contains("int") || name.starts_with("float") ? "the model before quantization"
                                                             : "";
}

// Writes integers in the width of the file's element type.
static void appendInteger(std::string &out, uint64_t value, int64_t width) {
  out.append(reinterpret_cast<const char *>(&value), width); // little endian
}

// The field that holds values of an element type where raw_data does not.
static int dataField(int32_t dataType) {
  switch (dataType) {
  case TensorProto::FLOAT:
    return TensorProto::kFloatDataFieldNumber;
  case TensorProto::DOUBLE:
    return TensorProto::kDoubleDataFieldNumber;
  case TensorProto::INT64:
    return TensorProto::kInt64DataFieldNumber;
  case TensorProto::UINT32:
  case TensorProto::UINT64:
    return TensorProto::kUint64DataFieldNumber;
  default:
    return TensorProto::kInt32DataFieldNumber;
  }
}

// Brings values that are not in raw_data to the form they would have there.
static bool decodeTyped(const Payload &payload, TensorBytes &result) {
  int64_t width = valueBytes(result.dataType, 1);
  bool isReal = isFloat(result.dataType);
  for (const auto &[field, pieces] : payload.typed) {
    if (field != dataField(result.dataType))
      return false;
    if (isReal && pieces.size() == 1 && pieces[0].gathered.empty()) {
      result.bytes = pieces[0].packed;
      return true;
    }
    for (const Payload::Piece &piece : pieces) {
      ArrayRef<char> bytes = piece.bytes();
      if (isReal) {
        result.storage.append(bytes.data(), bytes.size());
        continue;
      }
      WireReader reader(bytes);
      uint64_t value;
      while (!reader.done() && reader.readVarint(value))
        appendInteger(result.storage, value, width);
      if (reader.malformed())
        return false;
    }
  }
  result.bytes = {result.storage.data(), result.storage.size()};
  return true;
}

// The shape and the number of elements; a message where they make no sense.
static std::string readShape(const TensorProto &tensor, TensorBytes &result,
                             bool mayHaveFourBits = false) {
  result.name = tensor.name();
  result.dataType = tensor.data_type();
  result.count = 1;
  for (int64_t size : tensor.dims()) {
    if (size < 0 || (size > 0 && result.count > INT64_MAX / 8 / size))
      return "has an impossible size " + std::to_string(size);
    result.shape.push_back(size);
    result.count *= size;
  }
  if (!nn::findOnnxType(result.dataType) && !(mayHaveFourBits && isFourBits(result.dataType)))
    return "has elements of type " + elementName(result.dataType) + ", which are not supported";
  return "";
}

constexpr const char *kTwoFields = "has its values in two fields";

static std::string readValues(const Payload &payload, TensorBytes &result) {
  if (payload.typed.size() + (payload.raw.empty() ? 0 : 1) > 1)
    return kTwoFields;
  if (payload.typed.empty())
    result.bytes = payload.raw;
  else if (!decodeTyped(payload, result))
    return "has its values in a field that does not suit its element type";
  int64_t expected = valueBytes(result.dataType, result.count);
  if (static_cast<int64_t>(result.bytes.size()) != expected)
    return "has " + std::to_string(result.bytes.size()) + " bytes of values, but its shape needs " +
           std::to_string(expected);
  return "";
}

std::unique_ptr<TensorBytes> tensorBytes(const TensorProto &tensor, std::string &why) {
  auto result = std::make_unique<TensorBytes>();
  std::string serialized = tensor.SerializeAsString(), rest;
  Payload payload;
  why = readShape(tensor, *result);
  if (why.empty() && !stripTensor({serialized.data(), serialized.size()}, rest, payload))
    why = "cannot be read";
  if (why.empty() && tensor.data_location() == TensorProto::EXTERNAL)
    why = "is part of a node and has external values, which is not supported";
  if (why.empty())
    why = readValues(payload, *result);
  if (!why.empty())
    return nullptr;
  if (result->storage.empty()) { // the serialized form is about to go
    result->storage.assign(result->bytes.data(), result->bytes.size());
    result->bytes = {result->storage.data(), result->storage.size()};
  }
  return result;
}

// Of a tensor whose values stay in the file.
static std::optional<uint64_t> valuesNumber(const TensorProto &tensor) {
  const auto &unknown = tensor.GetReflection()->GetUnknownFields(tensor);
  for (int i = 0; i < unknown.field_count(); ++i)
    if (unknown.field(i).number() == kValuesNumber &&
        unknown.field(i).type() == google::protobuf::UnknownField::TYPE_VARINT)
      return unknown.field(i).varint();
  return std::nullopt;
}

std::unique_ptr<TensorBytes> ModelFile::tensorOfNode(const TensorProto &tensor,
                                                     std::string &why) const {
  std::optional<uint64_t> number = valuesNumber(tensor);
  if (!number || *number >= valuesInNodes.size())
    return tensorBytes(tensor, why);
  auto result = std::make_unique<TensorBytes>();
  Payload payload;
  payload.raw = valuesInNodes[*number];
  why = readShape(tensor, *result);
  if (why.empty() && tensor.data_location() == TensorProto::EXTERNAL)
    why = kTwoFields;
  if (why.empty())
    why = readValues(payload, *result);
  return why.empty() ? std::move(result) : nullptr;
}

template <typename Numbers>
static std::unique_ptr<TensorBytes>
tensorOfNumbers(TensorProto::DataType type, ArrayRef<int64_t> shape, const Numbers &numbers) {
  std::string values;
  for (auto number : numbers)
    values.append(reinterpret_cast<const char *>(&number), sizeof(number));
  return ownTensor("", type, shape, std::move(values));
}

std::unique_ptr<TensorBytes> ModelFile::tensorOfAttribute(const onnx::AttributeProto &attribute,
                                                          std::string &why) const {
  const StringRef kind = kindOf(attribute);
  if (kind == "tensor")
    return tensorOfNode(attribute.t(), why);
  if (kind == "float")
    return tensorOfNumbers(TensorProto::FLOAT, {}, ArrayRef<float>(attribute.f()));
  if (kind == "floats")
    return tensorOfNumbers(TensorProto::FLOAT, attribute.floats_size(), attribute.floats());
  if (kind == "int")
    return tensorOfNumbers(TensorProto::INT64, {}, ArrayRef<int64_t>(attribute.i()));
  if (kind == "ints")
    return tensorOfNumbers(TensorProto::INT64, attribute.ints_size(), attribute.ints());
  why = "holds no numbers";
  return nullptr;
}

void ModelFile::restoreValues(onnx::GraphProto &copy) const {
  for (onnx::NodeProto &node : *copy.mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      std::optional<uint64_t> number =
          attribute.has_t() ? valuesNumber(attribute.t()) : std::nullopt;
      if (!number || *number >= valuesInNodes.size())
        continue;
      TensorProto &tensor = *attribute.mutable_t();
      ArrayRef<char> values = valuesInNodes[*number];
      tensor.GetReflection()->MutableUnknownFields(&tensor)->DeleteByNumber(kValuesNumber);
      tensor.set_raw_data(values.data(), values.size());
    }
}

static void addRead(const onnx::GraphProto &graph, std::set<std::string> &names) {
  for (const onnx::NodeProto &node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        addRead(attribute.g(), names);
  }
  for (const onnx::ValueInfoProto &output : graph.output())
    names.insert(output.name());
}

// Values of types that no tensor here has are not obstacle where nothing reads them.
static void leaveOutUnread(onnx::GraphProto &graph, std::vector<Payload> &payloads, StringRef path,
                           Report &report) {
  std::set<std::string> read;
  int kept = 0;
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const TensorProto &tensor = graph.initializer(i);
    bool isKnown = tensor.data_type() == 0 || nn::findOnnxType(tensor.data_type());
    if (!isKnown && read.empty()) {
      addRead(graph, read);
      for (const onnx::ValueInfoProto &input : graph.input())
        read.insert(input.name());
    }
    if (!isKnown && !read.count(tensor.name())) {
      report.warning(Finding::unreadElements, path,
                     "initializer '" + tensor.name() + "' has elements of type " +
                         elementName(tensor.data_type()) +
                         ", and nothing uses it: models that are exported do not have it",
                     "nothing, where that is no loss");
      continue;
    }
    if (kept != i) {
      graph.mutable_initializer()->SwapElements(kept, i);
      std::swap(payloads[kept], payloads[i]);
    }
    ++kept;
  }
  graph.mutable_initializer()->DeleteSubrange(kept, graph.initializer_size() - kept);
  payloads.resize(kept);
}

// What nodes read that take no integers of four bits.
static std::set<std::string> readByOthers(const onnx::GraphProto &graph) {
  std::set<std::string> names;
  auto add = [&](const onnx::GraphProto &part, auto &addPart) -> void {
    for (const onnx::NodeProto &node : part.node()) {
      const bool dequantizes = node.op_type() == "DequantizeLinear";
      const bool gathers = node.op_type() == "GatherBlockQuantized";
      for (int i = 0; i < node.input_size(); ++i)
        if (!(dequantizes && (i == 0 || i == 2)) && !(gathers && (i == 0 || i == 3)))
          names.insert(node.input(i));
      for (const onnx::AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          addPart(attribute.g(), addPart);
    }
    for (const onnx::ValueInfoProto &output : part.output())
      names.insert(output.name());
  };
  add(graph, add);
  return names;
}

bool ModelFile::resolve(const std::vector<Payload> &payloads, Report &report) {
  size_t before = report.size();
  const std::set<std::string> onlyCast = namesOnlyCast(graph());
  computesIn = halfTypeOf(*proto, onlyCast);
  if (computesIn)
    widenTypes(*proto);
  widenHalvesInNodes(onlyCast);
  const auto isPacked = [](const TensorProto &tensor) { return isFourBits(tensor.data_type()); };
  const std::set<std::string> others =
      any_of(graph().initializer(), isPacked) ? readByOthers(graph()) : std::set<std::string>();
  for (int i = 0; i < graph().initializer_size(); ++i) {
    TensorProto &tensor = *proto->mutable_graph()->mutable_initializer(i);
    const int32_t type = tensor.data_type();
    const bool widens = isHalf(type) && (computesIn || onlyCast.count(tensor.name()));
    if (widens)
      tensor.set_data_type(TensorProto::UINT16); // it stands where halves do
    auto result = std::make_unique<TensorBytes>();
    std::string why = readShape(tensor, *result, !others.count(tensor.name()));
    if (why.empty() && tensor.data_location() == TensorProto::EXTERNAL) {
      if (!payloads[i].raw.empty() || !payloads[i].typed.empty())
        why = kTwoFields;
      else if (!resolveExternal(tensor, *result, report))
        continue;
    } else if (why.empty()) {
      why = readValues(payloads[i], *result);
    }
    const bool isKnown = elementBytes(tensor.data_type()) > 0;
    if (!why.empty())
      (void)report.error(isKnown ? ExitCode::unreadableModel : ExitCode::unsupportedModel, filePath,
                         "initializer '" + tensor.name() + "' " + why,
                         isKnown ? "" : adviceOn(tensor.data_type()));
    if (why.empty() && result->storage.empty())
      result->inFile = result->bytes;
    if (widens && why.empty()) {
      widenHalves(*result, type);
      tensor.set_data_type(result->dataType);
      if (computesIn)
        markWidened(tensor, type);
      forms[tensor.name()] = elementName(type);
    }
    keep(std::move(result));
  }
  return report.size() == before;
}

static void describe(const TensorBytes &values, TensorProto &tensor) {
  tensor.set_name(values.name);
  tensor.set_data_type(values.dataType);
  for (int64_t size : values.shape)
    tensor.add_dims(size);
}

StringRef ModelFile::formInFile(const std::string &name) const {
  const auto found = forms.find(name);
  return found == forms.end() ? StringRef() : StringRef(found->second);
}

// Constants that nodes hold.
void ModelFile::widenHalvesInNodes(const std::set<std::string> &onlyCast) {
  forEachNode(*proto, [&](onnx::NodeProto &node) {
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      widenHalf(node, attribute, onlyCast);
  });
}

void ModelFile::widenHalf(const onnx::NodeProto &node, onnx::AttributeProto &attribute,
                          const std::set<std::string> &onlyCast) {
  if (!attribute.has_t() || !isHalf(attribute.t().data_type()))
    return;
  const bool isConstant = isOnnx(node, "Constant") && node.output_size() == 1 &&
                          node.attribute_size() == 1 && onlyCast.count(node.output(0));
  if (!computesIn && !isConstant)
    return;
  TensorProto &tensor = *attribute.mutable_t();
  const int32_t type = tensor.data_type();
  tensor.set_data_type(TensorProto::UINT16);
  std::string why;
  std::unique_ptr<TensorBytes> values = tensorOfNode(tensor, why);
  tensor.set_data_type(type);
  if (!values) // who reads it says why
    return;
  widenHalves(*values, type);
  tensor.Clear();
  describe(*values, tensor);
  tensor.set_raw_data(values->bytes.data(), values->bytes.size());
  if (computesIn)
    markWidened(tensor, type);
}

bool ModelFile::makeDense(Report &report) {
  int64_t bytesLeft = int64_t{2} << 30; // of what a small file may ask for
  const size_t before = report.size();
  for (const onnx::SparseTensorProto &sparse : graph().sparse_initializer()) {
    const std::string name = sparse.values().name();
    std::string why;
    std::unique_ptr<TensorBytes> dense = denseTensor(sparse, bytesLeft, why);
    if (!dense) {
      (void)report.error(ExitCode::unsupportedModel, filePath, "initializer '" + name + "' " + why,
                         "an export with dense weights");
      continue;
    }
    forms[name] = "sparse";
    addInitializer(std::move(dense));
  }
  proto->mutable_graph()->clear_sparse_initializer();
  return report.size() == before;
}

// ONNX's own domain has two names.
template <typename Proto> static void useShortDomain(Proto &proto) {
  if (proto.domain() == "ai.onnx")
    proto.clear_domain();
}

static void useShortDomains(onnx::ModelProto &model) {
  forEachNode(model, [](onnx::NodeProto &node) { useShortDomain(node); });
  for (auto &import : *model.mutable_opset_import())
    useShortDomain(import);
  for (onnx::FunctionProto &function : *model.mutable_functions()) {
    useShortDomain(function);
    for (auto &import : *function.mutable_opset_import())
      useShortDomain(import);
  }
}

bool ModelFile::load(ArrayRef<char> bytes, Report &report) {
  std::string stripped;
  Payloads payloads;
  proto = std::make_unique<onnx::ModelProto>();
  const char *advice = "export the model again; the file is damaged or is not an ONNX model";
  if (!stripModel(bytes, stripped, payloads) || stripped.size() > INT_MAX ||
      !proto->ParseFromArray(stripped.data(), static_cast<int>(stripped.size()))) {
    (void)report.error(ExitCode::unreadableModel, filePath,
                       "not an ONNX model, or cut off (" + Twine(bytes.size()) + " bytes)", advice);
    return false;
  }
  if (!proto->has_graph() || proto->opset_import_size() == 0 ||
      static_cast<size_t>(graph().initializer_size()) != payloads.initializers.size()) {
    (void)report.error(ExitCode::unreadableModel, filePath,
                       "not an ONNX model: it has no graph or no operator-set version", advice);
    return false;
  }
  useShortDomains(*proto);
  valuesInNodes = std::move(payloads.inNodes);
  leaveOutUnread(*proto->mutable_graph(), payloads.initializers, filePath, report);
  if (!resolve(payloads.initializers, report) || !makeDense(report))
    return false;
  if (!computesIn)
    removeCasts(*proto->mutable_graph());
  return true;
}

static bool isText(StringRef path) {
  return path.ends_with(".onnxtxt") || path.ends_with(".onnxtext");
}

// The parser knows no comments; lines that begin with // are taken out first.
static std::string withoutComments(StringRef text) {
  std::string result;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    if (!line.ltrim().starts_with("//"))
      result += line;
    result += '\n';
    text = rest;
  }
  return result;
}

bool ModelFile::exportsHalves() const { return computesIn && !addedFloats; }

void ModelFile::keep(std::unique_ptr<TensorBytes> values) {
  byName[values->name] = values.get();
  initializers.push_back(std::move(values));
}

void ModelFile::addInitializer(std::unique_ptr<TensorBytes> values) {
  addedFloats |= isFloat(values->dataType);
  describe(*values, *editableGraph().add_initializer());
  keep(std::move(values));
}

void ModelFile::replaceInitializer(int index, std::unique_ptr<TensorBytes> values) {
  TensorProto &tensor = *editableGraph().mutable_initializer(index);
  byName.erase(tensor.name());
  byName[values->name] = values.get();
  tensor.Clear();
  describe(*values, tensor);
  addedFloats |= isFloat(values->dataType);
  replaced.push_back(std::exchange(initializers[index], std::move(values)));
}

std::shared_ptr<ModelFile> ModelFile::open(StringRef path, Report &report) {
  auto file = std::make_shared<ModelFile>();
  file->filePath = path.str();
  std::string why;
  file->mapped = MappedFile::open(file->filePath, why);
  if (!file->mapped) {
    (void)report.error(ExitCode::unreadableModel, path, "cannot be opened: " + why);
    return nullptr;
  }
  ArrayRef<char> bytes = file->mapped->bytes();
  if (isText(path)) {
    onnx::ModelProto model;
    std::string text = withoutComments({bytes.data(), bytes.size()});
    onnx::Common::Status status = onnx::OnnxParser::Parse(model, text.c_str());
    if (!status.IsOK()) {
      std::string message = status.ErrorMessage();
      std::replace(message.begin(), message.end(), '\n', ' ');
      (void)report.error(ExitCode::unreadableModel, path, message);
      return nullptr;
    }
    file->binary = model.SerializeAsString();
    bytes = {file->binary.data(), file->binary.size()};
  }
  return file->load(bytes, report) ? file : nullptr;
}

} // namespace trainc::reader
