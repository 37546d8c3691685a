// SPDX-License-Identifier: Apache-2.0
//
// A run goes on with a trainer that was compiled anew: for another target or machine, by another
// version, from a file that was exported again. Only what the model computes must be the same. So a
// value's digest is that of the node which makes it and of the digests of what that reads (a Merkle
// tree), and the model's is that of its outputs.
//
// Every operator, attribute and constant counts whole: what does not count may be all that tells
// two models apart. Known weakness: so a file that was exported for another fixed batch, whose size
// is in its shapes and masks, has another digest, and so have graphs that are equal by arithmetic
// (x + x and 2 * x), as two versions of an exporter may write them.
#include "compiler/onnx/graph/graph_digest.h"
#include "compiler/onnx/file/schema.h"
#include "compiler/onnx/parameters/exported_program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace trainc::reader {

using onnx::AttributeProto;

/// To be raised with every change of digests: of this rule, and of one that rewrites the file.
static constexpr StringRef kVersion = "02";

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

uint64_t digestOf(const TensorBytes &tensor) {
  Digest digest;
  digest.add("constant").add(static_cast<uint64_t>(tensor.dataType)).add(tensor.shape.size());
  for (int64_t size : tensor.shape)
    digest.add(static_cast<uint64_t>(size));
  auto bytes = reinterpret_cast<const uint8_t *>(tensor.bytes.data());
  return digest.add(xxh3_64bits(ArrayRef(bytes, tensor.bytes.size()))).value();
}

class GraphReader {
public:
  GraphReader(const ModelFile &file, const Graph &graph, const Parameters &initializers)
      : file(file), graph(graph) {
    for (const auto &initializer : initializers)
      values[initializer->name] = digestOf(*initializer);
    uint64_t number = 0;
    for (const onnx::ValueInfoProto &input : file.graph().input())
      if (!values.contains(input.name()))
        values[input.name()] = Digest().add("input").add(number++).value();
  }

  /// None where something was read that has no digest.
  std::optional<uint64_t> read() {
    for (const GraphNode *node : graph.nodes())
      addNode(*node);
    Digest digest;
    for (const onnx::ValueInfoProto &output : file.graph().output())
      digest.add(of(output.name()));
    return isKnown ? std::optional(digest.value()) : std::nullopt;
  }

private:
  static uint64_t digestOf(const Parameter &initializer) {
    const Parameter *parameter = initializer.canonical ? initializer.canonical : &initializer;
    if (!parameter->isParameter() && !initializer.isPartOfQuantized)
      return reader::digestOf(*initializer.tensor);
    return Digest()
        .add("parameter")
        .add(parameter->name)
        .add(initializer.canonical && initializer.transposed)
        .value();
  }

  uint64_t unknown() {
    isKnown = false;
    return 0;
  }

  uint64_t of(StringRef value) {
    if (value.empty()) // an input that is absent
      return 0;
    auto found = values.find(value);
    return found != values.end() ? found->second : unknown();
  }

  uint64_t of(const std::unique_ptr<TensorBytes> &tensor) {
    return tensor ? reader::digestOf(*tensor) : unknown();
  }

  void addNode(const GraphNode &node) {
    std::string why;
    if (isOnnx(*node.proto, "Identity") && node.inputs.size() == 1 && !isDetach(*node.proto))
      values[node.key()] = of(node.inputs[0]);
    else if (isOnnx(*node.proto, "Constant") && node.proto->attribute_size() == 1)
      values[node.key()] = of(file.tensorOfAttribute(node.proto->attribute(0), why));
    else
      addOperator(node);
  }

  void addOperator(const GraphNode &node) {
    Digest digest;
    digest.add(node.domain).add(isDetach(*node.proto) ? StringRef("detach") : node.opType());
    digest.add(node.domain.empty() && hasOlderMeaning(node));
    if (const std::string &meaning = nn::onnxSupport(node.domain, node.opType()).meaning;
        !meaning.empty())
      digest.add(meaning);
    std::map<StringRef, uint64_t> attributes; // in no order that an exporter chooses
    for (const AttributeProto &attribute : node.proto->attribute())
      if (!node.isIf() || !attribute.has_g()) // it reads what its branches make
        attributes[attribute.name()] = digestOf(attribute);
    digest.add(attributes.size());
    for (const auto &[name, value] : attributes)
      digest.add(name).add(value);
    digest.add(node.inputs.size());
    for (const std::string &input : node.inputs)
      digest.add(of(input));
    const uint64_t made = digest.value();
    for (auto [i, output] : enumerate(node.outputs))
      if (!output.empty())
        values[output] = Digest().add(made).add(i).value();
  }

  // Its numbers, texts and tensor. What a graph in it computes has no digest, nor has what no
  // operator holds that is read here.
  uint64_t digestOf(const AttributeProto &attribute) {
    if (attribute.has_g() || attribute.has_tp() || attribute.has_sparse_tensor() ||
        attribute.tensors_size() || attribute.graphs_size() || attribute.type_protos_size() ||
        attribute.sparse_tensors_size())
      return unknown();
    Digest digest;
    digest.add(static_cast<uint64_t>(attribute.i())).add(bit_cast<uint32_t>(attribute.f()));
    digest.add(attribute.s());
    digest.add(static_cast<uint64_t>(attribute.ints_size()));
    for (int64_t number : attribute.ints())
      digest.add(static_cast<uint64_t>(number));
    digest.add(static_cast<uint64_t>(attribute.floats_size()));
    for (float number : attribute.floats())
      digest.add(bit_cast<uint32_t>(number));
    digest.add(static_cast<uint64_t>(attribute.strings_size()));
    for (const std::string &text : attribute.strings())
      digest.add(text);
    std::string why;
    return digest.add(attribute.has_t() ? of(file.tensorOfNode(attribute.t(), why)) : 0).value();
  }

  const ModelFile &file;
  const Graph &graph;
  StringMap<uint64_t> values;
  bool isKnown = true;
};

} // namespace

std::string graphDigest(const ModelFile &file, const Graph &graph, const Parameters &initializers) {
  std::optional<uint64_t> digest = GraphReader(file, graph, initializers).read();
  return digest ? kVersion.str() + utohexstr(*digest, /*LowerCase=*/true, /*Width=*/16) : "";
}

} // namespace trainc::reader
