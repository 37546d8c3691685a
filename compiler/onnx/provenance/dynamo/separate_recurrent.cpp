// SPDX-License-Identifier: Apache-2.0
//
// Problem: ONNX's LSTM and GRU take the gates in another order than PyTorch's, and the parameters
// of all directions, and both biases, in one tensor each. The default exporter's optimizer computes
// those, and keeps one of several that are equal (biases of zeros).
//
// Method: the call names all parameters in order, a node is made of each layer, and each input of
// it is some of them in another order, every element once: trained in that place they are what they
// would be in the module, whatever updates elements by themselves. An input that was made from
// others than its own gets a copy.
#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/provenance/separation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

/// The parameters of a call, as it lists them: of each layer, then of each direction, the weights
/// of inputs and of states, and their biases.
struct Cells {
  std::vector<std::string> parameters;
  size_t layers = 0, directions = 1, ofCell = 2;

  // What a layer's node has in its weights (input 1), recurrent weights or biases.
  std::vector<std::string> stackedIn(size_t layer, int input) const {
    std::vector<std::string> result;
    for (size_t direction = 0; direction < directions; ++direction) {
      const auto cell =
          parameters.begin() + static_cast<ptrdiff_t>((layer * directions + direction) * ofCell);
      if (input < 3)
        result.push_back(cell[input - 1]);
      else if (ofCell == 4)
        result.insert(result.end(), {cell[2], cell[3]});
    }
    return result;
  }
};

// lstm(input, states, parameters, has_biases, layers, dropout, train, bidirectional, batch_first),
// and gru. None where the call is not so, has weights that project the states, or a parameter
// twice, of which one tensor would hold two copies.
std::optional<Cells> cellsOf(const ProgramCall &call, const ExportedProgram &program) {
  bool isRecurrent = call.operation == "aten.lstm.input" || call.operation == "aten.gru.input";
  Cells cells;
  if (!isRecurrent || call.arguments.size() < 8 ||
      StringRef(call.arguments[4]).getAsInteger(10, cells.layers))
    return std::nullopt;
  SmallVector<StringRef> listed;
  StringRef(call.arguments[2]).trim("[]").split(listed, ',', -1, false);
  for (StringRef text : listed) {
    StringRef parameter = program.parameterAt(text.trim().ltrim('%'));
    if (parameter.empty())
      return std::nullopt;
    cells.parameters.push_back(parameter.str());
  }
  cells.ofCell = call.arguments[3] == "True" ? 4 : 2;
  cells.directions = call.arguments[7] == "True" ? 2 : 1;
  bool isWhole = cells.parameters.size() == cells.layers * cells.directions * cells.ofCell;
  std::set<std::string> distinct(cells.parameters.begin(), cells.parameters.end());
  return isWhole && distinct.size() == cells.parameters.size() ? std::optional(std::move(cells))
                                                               : std::nullopt;
}

class RecurrentSeparator {
public:
  RecurrentSeparator(ModelFile &file, Separation &separation)
      : file(file), separation(separation), program(separation.program) {}

  void run() {
    if (!program.isRecorded())
      return;
    for (int i = 0; i < file.graph().initializer_size(); ++i)
      initializers[file.graph().initializer(i).name()] = i;
    std::vector<std::pair<ProgramCall, std::vector<NodeProto *>>> calls;
    for (NodeProto &node : *file.editableGraph().mutable_node()) {
      const ProgramCall *call = program.callOf(node);
      if (!call || (!isOnnx(node, "LSTM") && !isOnnx(node, "GRU")))
        continue;
      auto found = find_if(calls, [&](const auto &one) { return one.first.name == call->name; });
      if (found == calls.end()) {
        calls.emplace_back(*call, std::vector<NodeProto *>());
        found = std::prev(calls.end());
      }
      found->second.push_back(&node);
    }
    for (const auto &[call, layers] : calls) {
      std::optional<Cells> cells = cellsOf(call, program);
      if (!cells || layers.size() != cells->layers)
        continue; // what cannot be told is refused as computed from several parameters
      for (const auto &[layer, node] : llvm::enumerate(layers))
        for (int input = 1; input < std::min(node->input_size(), 4); ++input)
          if (initializers.count(node->input(input)))
            place(*node, input, cells->stackedIn(layer, input));
    }
  }

private:
  // All else that it was made from are sizes and the like; another operation would be named.
  std::optional<std::set<std::string>> originsOf(const std::string &name) const {
    std::set<std::string> origins;
    for (const std::string &source : program.sourcesOf(name))
      if (program.isParameter(source))
        origins.insert(source);
      else if (!isNumber(baseName(source)))
        return std::nullopt;
    return origins;
  }

  void place(NodeProto &node, int input, const std::vector<std::string> &own) {
    const std::string from = node.input(input);
    std::optional<std::set<std::string>> origins = originsOf(from);
    if (!origins || origins->empty() || own.empty())
      return;
    // The sizes in it may come from further parameters, such as learnt initial states.
    bool isOwn = all_of(own, [&](const std::string &one) { return origins->count(one); });
    auto [held, isFirst] = separation.stacked.try_emplace(from, own);
    if (!isOwn && isFirst)
      separation.stacked.erase(held);
    else if (held->second == own)
      return;
    node.set_input(input, copyOf(from, own));
  }

  std::string copyOf(const std::string &from, const std::vector<std::string> &own) {
    std::string name = own[0] + ".stacked";
    if (!initializers.count(name)) {
      auto copy = sharedCopy(file.initializer(initializers[from]), name);
      initializers[name] = file.graph().initializer_size();
      separation.origin[name] = apartFrom(from);
      program.addSources(name, own);
      file.addInitializer(std::move(copy));
    }
    separation.stacked[name] = own;
    return name;
  }

  ModelFile &file;
  Separation &separation;
  ExportedProgram &program;
  StringMap<int> initializers; // by name
};

} // namespace

void separateRecurrent(ModelFile &file, Separation &separation) {
  RecurrentSeparator(file, separation).run();
}

} // namespace trainc::reader
