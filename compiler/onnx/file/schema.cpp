// SPDX-License-Identifier: Apache-2.0
//
// Nodes against the one table of declarations. The packaged ONNX library has one too, which ends at
// operator set 17.
#include "compiler/onnx/file/schema.h"
#include "compiler/onnx/import/built_in.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

using onnx::AttributeProto;

constexpr Declaration kDeclarations[] = {
#include "compiler/onnx/file/schemas.inc"
};

// All versions of an operator, oldest first.
static ArrayRef<Declaration> declarationsOf(StringRef opType) {
  static const StringMap<ArrayRef<Declaration>> byName = [] {
    StringMap<ArrayRef<Declaration>> result;
    for (const Declaration *first = std::begin(kDeclarations); first != std::end(kDeclarations);) {
      const Declaration *last = first;
      while (last != std::end(kDeclarations) && StringRef(last->opType) == first->opType)
        ++last;
      result[first->opType] = ArrayRef(first, last);
      first = last;
    }
    return result;
  }();
  return byName.lookup(opType);
}

static bool ends(const Declaration &version) {
  return StringRef(version.attributes) == "deprecated";
}

const Declaration *findDeclaration(StringRef opType, int64_t opset) {
  const Declaration *found = nullptr;
  for (const Declaration &version : declarationsOf(opType))
    if (version.since <= opset)
      found = ends(version) ? nullptr : &version;
  return found;
}

int64_t firstOpset(StringRef opType) {
  ArrayRef<Declaration> versions = declarationsOf(opType);
  return versions.empty() ? 0 : versions[0].since;
}

int64_t endOpset(StringRef opType) {
  ArrayRef<Declaration> versions = declarationsOf(opType);
  return versions.empty() || !ends(versions.back()) ? 0 : versions.back().since;
}

std::string versionsOf(StringRef opType, std::set<int64_t> importers) {
  int64_t end = endOpset(opType), last = end ? end - 1 : kNewestOpset;
  int64_t oldest = std::max(*importers.begin(), kOldestOpset);
  for (const Declaration &version : declarationsOf(opType))
    importers.insert(version.since);
  std::vector<int64_t> starts{oldest};
  std::copy_if(importers.begin(), importers.end(), std::back_inserter(starts),
               [&](int64_t since) { return since > oldest && since <= last; });
  std::string windows;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t until = i + 1 < starts.size() ? starts[i + 1] - 1 : last;
    windows += (i ? ", " : "") + std::to_string(starts[i]);
    if (until > starts[i])
      windows += " to " + std::to_string(until);
  }
  return windows;
}

// The kind that a declaration gives the attribute, such as `ints!`; empty where it has none.
static StringRef declaredKind(const Declaration &declaration, StringRef attribute) {
  for (StringRef entry : split(declaration.attributes, ' '))
    if (auto [name, kind] = entry.split(':'); name == attribute)
      return kind;
  return "";
}

// What attributes hold, as the table of declarations calls it and in words.
struct HeldKind {
  AttributeProto::AttributeType type;
  StringRef kind, inWords;
};

constexpr HeldKind kHeldKinds[] = {
    {AttributeProto::FLOAT, "float", "a float"},
    {AttributeProto::INT, "int", "an integer"},
    {AttributeProto::STRING, "string", "a string"},
    {AttributeProto::TENSOR, "tensor", "a tensor"},
    {AttributeProto::GRAPH, "graph", "a graph"},
    {AttributeProto::SPARSE_TENSOR, "sparse_tensor", "a sparse tensor"},
    {AttributeProto::TYPE_PROTO, "type", "a type"},
    {AttributeProto::FLOATS, "floats", "a list of floats"},
    {AttributeProto::INTS, "ints", "a list of integers"},
    {AttributeProto::STRINGS, "strings", "a list of strings"},
};

// Empty for types that no declaration has.
static StringRef kindOfType(AttributeProto::AttributeType type) {
  const HeldKind *row = find_if(kHeldKinds, [&](const auto &each) { return each.type == type; });
  return row == std::end(kHeldKinds) ? "" : row->kind;
}

static StringRef inWords(StringRef kind) {
  const HeldKind *row = find_if(kHeldKinds, [&](const auto &each) { return each.kind == kind; });
  return row == std::end(kHeldKinds) ? "of a kind that no operator has" : row->inWords;
}

// What the attribute's fields hold. Some writers write all of them: zeros do not count.
static SmallVector<StringRef> heldKinds(const AttributeProto &attribute) {
  SmallVector<StringRef> held;
  auto add = [&](bool holds, StringRef kind) {
    if (holds)
      held.push_back(kind);
  };
  add(attribute.f() != 0, "float");
  add(attribute.i() != 0, "int");
  add(!attribute.s().empty(), "string");
  add(attribute.has_t(), "tensor");
  add(attribute.has_g(), "graph");
  add(attribute.has_sparse_tensor(), "sparse_tensor");
  add(attribute.has_tp(), "type");
  add(attribute.floats_size() != 0, "floats");
  add(attribute.ints_size() != 0, "ints");
  add(attribute.strings_size() != 0, "strings");
  return held;
}

// Kinds whose values are messages, which have no value that an empty field could stand for.
static bool isMessageKind(StringRef kind) {
  return llvm::is_contained({"tensor", "graph", "sparse_tensor", "type"}, kind);
}

// Files older than the field `type` tell the kind by the field that is there.
StringRef kindOf(const AttributeProto &attribute) {
  if (attribute.has_type() && attribute.type() != AttributeProto::UNDEFINED)
    return kindOfType(attribute.type());
  if (SmallVector<StringRef> held = heldKinds(attribute); !held.empty())
    return held[0];
  return attribute.has_f()   ? "float"
         : attribute.has_i() ? "int"
         : attribute.has_s() ? "string"
                             : "";
}

static std::string checkAttribute(const GraphNode &node, const Declaration &declaration,
                                  const AttributeProto &attribute) {
  std::string subject = "attribute '" + attribute.name() + "' ";
  if (!attribute.ref_attr_name().empty())
    return subject + "is that of a function, '" + attribute.ref_attr_name() +
           "', but the node is in none";
  StringRef declared = declaredKind(declaration, attribute.name()).rtrim('!');
  if (declared.empty())
    return node.opType().str() + " of operator set " + std::to_string(node.opset) +
           " has no attribute '" + attribute.name() + "'";
  SmallVector<StringRef> held = heldKinds(attribute);
  StringRef kind = kindOf(attribute);
  bool saysNothing = kind.empty() && !attribute.has_type();
  if (kind != declared && !saysNothing)
    return (subject + "is " + inWords(kind) + ", expected " + inWords(declared)).str();
  if (isMessageKind(declared) && !llvm::is_contained(held, declared))
    return subject + "holds nothing, expected " + inWords(declared).str();
  for (StringRef other : held)
    if (other != kind)
      return (subject + "holds " + inWords(other) + (held.size() > 1 ? " besides " : " and not ") +
              inWords(kind))
          .str();
  return "";
}

static std::string checkAttributes(const GraphNode &node, const Declaration &declaration) {
  if (node.opType() == "Constant" && node.proto->attribute_size() != 1)
    return "has " + std::to_string(node.proto->attribute_size()) +
           " attributes, but its value is exactly one";
  std::set<StringRef> seen;
  for (const AttributeProto &attribute : node.proto->attribute()) {
    if (!seen.insert(attribute.name()).second)
      return "attribute '" + attribute.name() + "' is given twice";
    if (std::string why = checkAttribute(node, declaration, attribute); !why.empty())
      return why;
  }
  for (StringRef entry : split(declaration.attributes, ' '))
    if (auto [name, kind] = entry.split(':'); kind.ends_with("!") && !seen.count(name))
      return "attribute '" + name.str() + "' is missing";
  return "";
}

static std::string countOf(size_t count, const char *what) {
  return "has " + std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

static std::string checkInputs(const GraphNode &node, const Declaration &declaration) {
  StringRef letters = declaration.inputs;
  const bool readsMore = node.isIf() || node.isLoop() || node.isScan(); // in the graph (graph.h)
  size_t given = readsMore ? node.proto->input_size() : node.inputs.size();
  for (size_t i = 0; i < std::max<size_t>(declaration.leastInputs, given); ++i) {
    if (i < given && !node.inputs[i].empty())
      continue;
    char letter = i < letters.size() ? letters[i] : letters.empty() ? 'o' : letters.back();
    const bool isLeftOut = letter == 'o' && i < given; // by an empty name
    if (letter == 'r' || (letter == 'v' && i < given) ||
        (i < declaration.leastInputs && !isLeftOut))
      return "input " + std::to_string(i) + " is missing";
  }
  if (given > letters.size() && !letters.ends_with("v"))
    return countOf(given, "input") + ", but " + node.opType().str() + " of operator set " +
           std::to_string(node.opset) + " takes at most " + std::to_string(letters.size());
  return "";
}

static std::string checkOutputs(const GraphNode &node, const Declaration &declaration) {
  StringRef letters = declaration.outputs;
  if (node.outputs.size() > letters.size() && !letters.ends_with("v"))
    return countOf(node.outputs.size(), "output") + ", but " + node.opType().str() +
           " of operator set " + std::to_string(node.opset) + " makes at most " +
           std::to_string(letters.size());
  return "";
}

static std::string checkNode(const GraphNode &node, const Declaration *declaration) {
  if (!declaration)
    return "";
  std::string why = checkInputs(node, *declaration);
  if (why.empty())
    why = checkOutputs(node, *declaration);
  return why.empty() ? checkAttributes(node, *declaration) : why;
}

std::string checkNode(const GraphNode &node) {
  if (int64_t end = endOpset(node.opType()); end && node.opset >= end)
    return "ONNX has no operator '" + node.opType().str() + "' from operator set " +
           std::to_string(end) + " on";
  return checkNode(node, findDeclaration(node.opType(), node.opset));
}

static bool isFloat(const InputType &type) {
  return StringRef(type.element).starts_with("f") || StringRef(type.element).starts_with("bf");
}
static bool isBool(const InputType &type) { return type.element == "bool"; }
static bool isInteger(const InputType &type) { return !isFloat(type) && !isBool(type); }

static bool areMixed(const InputType &a, const InputType &b) {
  if (isFloat(a) && isFloat(b))
    return a.element != b.element && !a.isConstant && !b.isConstant;
  return isInteger(a) != isInteger(b) || isBool(a) != isBool(b);
}

std::string checkTypes(const GraphNode &node, ArrayRef<InputType> inputs) {
  const Declaration *declaration = findDeclaration(node.opType(), node.opset);
  StringRef letters = declaration ? declaration->types : "";
  const bool endsWithAny = declaration && StringRef(declaration->inputs).ends_with("v");
  std::map<char, InputType> first;
  for (auto [i, input] : enumerate(inputs)) {
    const char letter = i < letters.size()                ? letters[i]
                        : endsWithAny && !letters.empty() ? letters.back()
                                                          : '-';
    if (letter == '-' || input.element.empty())
      continue;
    if (letter == 'i' ? !isInteger(input) : letter == 'b' && !isBool(input))
      return "input " + std::to_string(i) + " has element type " + input.element + ", expected " +
             (letter == 'i' ? "integers" : "bool");
    if (std::isupper(letter))
      if (InputType other = first.try_emplace(letter, input).first->second; areMixed(other, input))
        return "operands have element types " + other.element + " and " + input.element;
  }
  return "";
}

// The operator set from which on a node of the same inputs and attributes computes something else,
// which declarations do not show: what is of training where nothing is said, where slopes lie, axes
// after the one it names, the default of an axis, and scales of channels instead of groups.
static int64_t changedIn(StringRef opType) {
  return llvm::StringSwitch<int64_t>(opType)
      .Cases("BatchNormalization", "Dropout", "PRelu", 7)
      .Cases("Softmax", "LogSoftmax", "Hardmax", 13)
      .Case("DFT", 20)
      .Case("GroupNormalization", 21)
      .Default(0);
}

bool hasOlderMeaning(const GraphNode &node) { return node.opset < changedIn(node.opType()); }

bool meansTheSame(const GraphNode &node, int64_t opset) {
  const Declaration *own = findDeclaration(node.opType(), node.opset);
  const Declaration *other = findDeclaration(node.opType(), opset);
  int64_t changed = changedIn(node.opType());
  if ((node.opset < changed) != (opset < changed))
    return false;
  if (!own || !other)
    return own == other;
  StringRef inputs = own->inputs, others = other->inputs;
  bool onlyAdds = inputs.starts_with(others) || others.starts_with(inputs);
  return own == other || (onlyAdds && checkNode(node, other).empty());
}

} // namespace trainc::reader
