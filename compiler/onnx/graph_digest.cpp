// SPDX-License-Identifier: Apache-2.0
//
// A run goes on with a trainer that was compiled anew: for another batch, target or machine, by
// another version, from a file that was exported again. Only what the model computes must be the
// same. So a value's digest is that of the node which makes it and of the digests of what that
// reads (a Merkle tree), and the model's is that of its outputs.
//
// A file that was exported for a fixed batch has its size in constants: as the first element of a
// shape, or as equal rows of a mask. Neither counts. Known weakness: of two graphs that are equal
// by arithmetic (x + x and 2 * x), as two versions of an exporter may write them, the digests
// differ.
#include "compiler/onnx/graph_digest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <cstring>

using namespace llvm;

namespace trainc::reader {

using onnx::AttributeProto;

static constexpr StringRef kVersion = "01";

namespace {

/// A digest of what is added, in its order.
class Digest {
public:
  Digest &add(uint64_t number) {
    text.append(reinterpret_cast<const char *>(&number), sizeof(number));
    return *this;
  }
  Digest &add(StringRef part) {
    add(part.size());
    text += part;
    return *this;
  }
  uint64_t value() const { return xxh3_64bits(text); }

private:
  std::string text;
};

uint64_t digestOf(ArrayRef<char> bytes) {
  return xxh3_64bits(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

/// Rows of the first axis that are all equal count once.
uint64_t digestOf(const TensorBytes &tensor) {
  ArrayRef<char> bytes = tensor.bytes;
  ArrayRef<int64_t> shape = tensor.shape;
  while (!shape.empty() && shape.front() > 0) {
    size_t row = bytes.size() / static_cast<size_t>(shape.front());
    if (std::memcmp(bytes.data(), bytes.data() + row, bytes.size() - row) != 0)
      break;
    bytes = bytes.take_front(row);
    shape = shape.drop_front();
  }
  Digest digest;
  digest.add("constant").add(static_cast<uint64_t>(tensor.dataType));
  for (int64_t size : shape)
    digest.add(static_cast<uint64_t>(size));
  return digest.add(digestOf(bytes)).value();
}

class GraphReader {
public:
  GraphReader(const ModelFile &file, const Graph &graph, const Decisions &decisions)
      : file(file), graph(graph) {
    for (const auto &decision : decisions)
      addInitializer(*decision);
  }

  uint64_t read() {
    for (const GraphNode *node : graph.nodes())
      addNode(*node);
    Digest digest;
    for (const onnx::ValueInfoProto &output : file.graph().output())
      digest.add(of(output.name()));
    return digest.value();
  }

private:
  void addInitializer(const Decision &decision) {
    const Decision *parameter = decision.canonical ? decision.canonical : &decision;
    if (parameter->isParameter()) {
      values[decision.name()] = Digest()
                                    .add("parameter")
                                    .add(parameter->name())
                                    .add(decision.canonical && decision.transposed)
                                    .value();
      return;
    }
    values[decision.name()] = digestOf(*decision.tensor);
    constants[decision.name()] = decision.tensor;
  }

  uint64_t of(StringRef value) const {
    auto found = values.find(value);
    return found != values.end() ? found->second
           : value.empty()       ? 0
                                 : Digest().add("input").add(value).value();
  }

  /// True for an input that is a shape, of which the first element may be that of a fixed batch.
  static bool isShape(const GraphNode &node, size_t input) {
    return node.domain.empty() &&
           (((node.opType() == "Reshape" || node.opType() == "Expand") && input == 1) ||
            (node.opType() == "ConstantOfShape" && input == 0));
  }

  uint64_t inputOf(const GraphNode &node, size_t index) const {
    const TensorBytes *constant = constants.lookup(node.inputs[index]);
    const auto width = sizeof(int64_t);
    if (!constant || !isShape(node, index) || constant->bytes.size() < width)
      return of(node.inputs[index]);
    return Digest()
        .add("shape")
        .add(constant->bytes.size())
        .add(digestOf(constant->bytes.drop_front(width)))
        .value();
  }

  void addNode(const GraphNode &node) {
    if (node.domain.empty() && node.opType() == "Identity" && node.inputs.size() == 1) {
      values[node.key()] = of(node.inputs[0]);
      constants[node.key()] = constants.lookup(node.inputs[0]);
      return;
    }
    if (node.domain.empty() && node.opType() == "Constant" && addConstant(node))
      return;
    Digest digest;
    digest.add(node.domain).add(node.opType());
    std::map<std::string, uint64_t> attributes; // in no order that an exporter chooses
    for (const AttributeProto &attribute : node.proto->attribute())
      attributes[attribute.name()] = attributeOf(attribute);
    for (const auto &[name, value] : attributes)
      digest.add(name).add(value);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      digest.add(inputOf(node, i));
    const uint64_t made = digest.value();
    for (auto [i, output] : enumerate(node.outputs))
      values[output] = Digest().add(made).add(i).value();
  }

  bool addConstant(const GraphNode &node) {
    const AttributeProto *value = node.attribute("value");
    std::string why;
    std::unique_ptr<TensorBytes> tensor =
        value && value->has_t() ? file.tensorOfNode(value->t(), why) : nullptr;
    if (!tensor)
      return false;
    values[node.key()] = digestOf(*tensor);
    constants[node.key()] = tensor.get();
    ofNodes.push_back(std::move(tensor));
    return true;
  }

  uint64_t attributeOf(const AttributeProto &attribute) const {
    std::string why;
    if (attribute.has_t())
      if (std::unique_ptr<TensorBytes> tensor = file.tensorOfNode(attribute.t(), why))
        return digestOf(*tensor);
    AttributeProto bare = attribute;
    bare.clear_doc_string();
    return Digest().add(bare.SerializeAsString()).value();
  }

  const ModelFile &file;
  const Graph &graph;
  StringMap<uint64_t> values;
  StringMap<const TensorBytes *> constants;
  std::vector<std::unique_ptr<TensorBytes>> ofNodes;
};

} // namespace

std::string graphDigest(const ModelFile &file, const Graph &graph, const Decisions &decisions) {
  return kVersion.str() +
         utohexstr(GraphReader(file, graph, decisions).read(), /*LowerCase=*/true, /*Width=*/16);
}

} // namespace trainc::reader
