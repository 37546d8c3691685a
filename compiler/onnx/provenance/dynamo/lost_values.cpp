// SPDX-License-Identifier: Apache-2.0
//
// Problem: of norm_a(x) and norm_b(x), both fresh, one node is left, with the call of norm_a. That
// norm_b has another use, which names its parameters, tells nothing about this one.
//
// Method: what used norm_b(x) still names it, and reads another value, the stand. If both are
// results of one kind of operation, the two were merged. Else the value that is gone was a user of
// the stand, whose call records how many users it had: what is more than that was merged. From a
// merged call the walk goes on to the calls whose values it reads, unless those had one user more,
// which then was the call that is gone.
//
// Weakness: a user that left no trace (a size that was known) counts as the one looked for.
#include "compiler/onnx/provenance/dynamo/lost_values.h"
#include "compiler/onnx/provenance/dynamo/parametric_calls.h"

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

class Finder {
public:
  Finder(const ModelFile &file, const ExportedProgram &program,
         llvm::function_ref<bool(const std::string &)> isLost)
      : file(file), program(program), isLost(isLost) {
    collect();
  }

  LostValues run() {
    for (const auto &[name, call] : calls)
      lookAt(name, call);
    lookAtResults();
    for (const auto &[lost, maker] : stands)
      judge(lost, maker);
    return std::move(found);
  }

private:
  struct Call {
    const ProgramCall *call = nullptr;
    std::vector<std::string> reads; // values of other calls, inputs and initializers
    std::set<std::string> users;    // calls, and values that are gone
    int nodes = 0;
  };

  void collect() {
    const onnx::GraphProto &graph = file.graph();
    for (const auto &tensor : graph.initializer())
      initializers[tensor.name()] = isFloat(tensor.data_type()) && tensor.dims_size() > 0;
    for (const auto *values : {&graph.value_info(), &graph.input(), &graph.output()})
      for (const onnx::ValueInfoProto &value : *values)
        if (int type = value.type().tensor_type().elem_type(); type != 0 && !isFloat(type))
          integers.insert(value.name());
    for (const NodeProto &node : graph.node()) {
      const ProgramCall *call = program.callOf(node);
      for (const std::string &output : node.output())
        if (call)
          makers[output] = call->name;
        else if (node.input_size() > 0)
          passedOn[output] = node.input(0);
    }
    for (const NodeProto &node : graph.node())
      if (const ProgramCall *call = program.callOf(node)) {
        calls[call->name].call = call;
        ++calls[call->name].nodes;
        for (const std::string &input : node.input())
          if (!input.empty() && makers.lookup(input) != call->name)
            calls[call->name].reads.push_back(input);
      }
    for (const auto &[name, call] : calls)
      for (const std::string &reference : call.call->references) {
        const std::string maker = makers.lookup(reference);
        if (auto used = calls.find(maker.empty() ? reference : maker); used != calls.end())
          used->second.users.insert(name);
      }
  }

  /// The call that a value comes from, also through nodes without one (a split); "" for inputs.
  std::string makerOf(std::string value) const {
    for (size_t step = 0; step <= passedOn.size(); ++step) {
      if (auto maker = makers.find(value); maker != makers.end())
        return maker->second;
      auto from = passedOn.find(value);
      if (from == passedOn.end())
        return "";
      value = from->second;
    }
    return "";
  }

  void lookAt(const std::string &user, const Call &call) {
    const std::vector<std::string> &references = call.call->references;
    std::vector<std::string> lost, others, again;
    for (const std::string &reference : references)
      if (isLost(reference) && !isNumber(baseName(reference)) && !is_contained(lost, reference))
        lost.push_back(reference);
    if (lost.empty())
      return;
    bool readsTable = false;
    std::vector<std::string> unread = references; // as each stands for one value of a single node
    for (const std::string &value : call.reads) {
      if (auto read = llvm::find(unread, makers.lookup(value)); read != unread.end())
        unread.erase(read);
      else if (auto own = llvm::find(unread, value); own != unread.end())
        unread.erase(own);
      else if (call.nodes == 1 && !initializers.count(value))
        again.push_back(value);
      const bool isNamed =
          is_contained(references, value) || is_contained(references, makers.lookup(value));
      if (auto tensor = initializers.find(value); tensor != initializers.end())
        readsTable |=
            tensor->second && !isNamed && !is_contained(program.parametersOf(*call.call), value);
      else if (!isNamed && !is_contained(others, value))
        others.push_back(value);
    }
    if (others.empty() && readsTable) // what is gone became that initializer
      return;
    const std::vector<std::string> &read = others.empty() ? again : others;
    for (size_t i = 0; i < lost.size(); ++i)
      for (size_t j = 0; j < read.size(); ++j)
        if (i == j || lost.size() != read.size())
          addStand(user, lost[i], read[j]);
  }

  // A result keeps its name, whatever is left to make it. A call with several has none of its own.
  void lookAtResults() {
    const auto &outputs = file.graph().output();
    if (static_cast<size_t>(outputs.size()) != program.outputs().size())
      return;
    for (int i = 0; i < outputs.size(); ++i) {
      const std::string &result = program.outputs()[i];
      const std::string maker = makers.lookup(result);
      const bool isOther = !maker.empty() && maker != result && !calls.count(result) &&
                           baseName(result) != "getitem" && baseName(result) != "val";
      if (isOther || isLost(result))
        addStand("", result, outputs[i].name());
    }
  }

  void addStand(const std::string &user, const std::string &lost, const std::string &value) {
    const std::string maker = makers.lookup(value);
    const bool isPart = passedOn.count(value) > 0 || // one of several values of a split
                        baseName(value) == "val";    // or of the nodes of one call
    if (integers.contains(value) || isPart || (maker == user && !maker.empty()))
      return;
    if (auto call = calls.find(maker); call != calls.end())
      call->second.users.insert(lost);
    stands.emplace_back(lost, maker);
  }

  void judge(const std::string &lost, const std::string &maker) {
    const StringRef kind = baseName(lost);
    if (auto call = calls.find(maker); call != calls.end()) {
      const std::optional<size_t> users = call->second.call->users;
      const bool isSameKind = kind == baseName(maker) && !isMovement(kind);
      if (isSameKind || (users && call->second.users.size() > *users))
        return follow(maker);
    }
    (hasNoParameters(kind) ? found.moves : found.calculates) = true;
  }

  void follow(const std::string &first) {
    std::vector<std::string> left{first};
    while (!left.empty()) {
      std::string name = std::move(left.back());
      left.pop_back();
      if (!found.merged.insert(name).second)
        continue;
      for (const std::string &value : calls[name].reads)
        if (auto call = calls.find(makerOf(value)); call != calls.end())
          if (call->second.users.size() >= call->second.call->users.value_or(0))
            left.push_back(call->first);
    }
  }

  const ModelFile &file;
  const ExportedProgram &program;
  llvm::function_ref<bool(const std::string &)> isLost;
  std::map<std::string, Call> calls; // by name
  StringMap<std::string> makers;     // calls, by value
  StringMap<std::string> passedOn;   // first input of a node without a call, by its outputs
  StringMap<bool> initializers;      // whether they are floats with axes
  llvm::StringSet<> integers;        // values
  std::vector<std::pair<std::string, std::string>> stands; // a value that is gone, a call
  LostValues found;
};

} // namespace

LostValues findLostValues(const ModelFile &file, const ExportedProgram &program,
                          llvm::function_ref<bool(const std::string &)> isLost) {
  return Finder(file, program, isLost).run();
}

} // namespace trainc::reader
