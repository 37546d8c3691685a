// SPDX-License-Identifier: Apache-2.0
//
// Problem: PyTorch's TorchScript exporter folds the parameters of an LSTM, GRU or RNN into
// initializers of their own, with gates in ONNX's order. A parameter that the module uses elsewhere
// too (tied to a Linear, an Embedding or another layer, one bias for inputs and states) is in the
// file twice then, and would train as two.
//
// Method: each such initializer is read as the module's parameters again. Any that has the values
// of another one, of a trained tensor or of its transpose, or of which a folded tensor is a part or
// a multiple, is in doubt.
//
// Weakness: values that code may have written (zeros, ones, an identity) say nothing.
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/provenance/doubts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace llvm;

namespace trainc::reader {

namespace {

/// A parameter of the module within an initializer.
struct Held {
  const Decision *holder;
  ModuleLayout layout;
  std::unique_ptr<TensorBytes> values; // in the module's order, without axes of size 1

  std::string text() const { return "the " + layout.what + " in '" + holder->name().str() + "'"; }
};

class SharedRecurrent {
public:
  SharedRecurrent(const Decisions &decisions, const Graph &graph) {
    std::set<const Decision *> recurrent;
    for (const auto &decision : decisions)
      if (decision->isParameter() && isTorchScriptName(decision->name()))
        for (const Use &use : graph.uses(decision->name()))
          if (addHeld(*decision, use)) {
            recurrent.insert(decision.get());
            break; // by any further call of the module
          }
    for (const auto &decision : decisions)
      if (decision->isParameter() && decision->role != Role::buffer &&
          !recurrent.count(decision.get()))
        others.push_back(decision.get());
  }

  /// Texts of pairs that are equal, or one a part or a multiple of the other.
  std::vector<std::string> pairs() const {
    std::vector<std::string> result;
    llvm::DenseMap<int64_t, std::vector<const Held *>> earlier; // by number of elements
    for (const Held &one : held) {
      std::vector<const Held *> &alike = earlier[one.values->count];
      for (const Held *other : alike)
        if (isTrained(*one.holder, *other->holder) && one.values->shape == other->values->shape &&
            one.values->bytes == other->values->bytes)
          result.push_back(other->text() + " and " + one.text());
      alike.push_back(&one);
    }
    for (const Decision *other : others) {
      TensorBytes values = withoutSingleAxes(*other->tensor);
      bool isFolded = isTorchScriptName(other->name());
      for (const Held &one : held)
        if (isTrained(*one.holder, *other) && areRelated(values, *one.values, isFolded))
          result.push_back("'" + other->name().str() + "' and " + one.text());
    }
    return result;
  }

private:
  bool addHeld(const Decision &decision, const Use &use) {
    std::vector<ModuleLayout> layouts =
        recurrentLayout(*use.node, use.index, decision.tensor->shape);
    for (ModuleLayout &layout : layouts) {
      Held one{&decision, std::move(layout), nullptr};
      one.values = inModulesOrder(*decision.tensor, one.layout);
      llvm::erase(one.values->shape, 1);
      if (!isWritten(one))
        held.push_back(std::move(one));
    }
    return !layouts.empty();
  }

  // Each gate with one value, too: zeros, but ones for the gate that forgets.
  static bool isWritten(const Held &one) {
    return mayBeWritten(*one.values) || all_of(one.layout.pieces, [&](const LayoutPiece &piece) {
             TensorBytes gate;
             gate.dataType = one.values->dataType;
             const auto width = static_cast<size_t>(elementBytes(gate.dataType));
             gate.bytes = one.values->bytes.slice(static_cast<size_t>(piece.ofModule) * width,
                                                  static_cast<size_t>(piece.count) * width);
             return isUniform(gate);
           });
  }

  static bool isTrained(const Decision &one, const Decision &other) {
    return one.role == Role::trained || other.role == Role::trained;
  }

  static bool areRelated(const TensorBytes &other, const TensorBytes &values, bool isFolded) {
    if (other.dataType != values.dataType)
      return false;
    if (other.count == values.count)
      return other.bytes == values.bytes || sameValues(other, values, /*transposed=*/true) ||
             (isFolded && (isMultipleOf(other, values, /*transposed=*/false) ||
                           isMultipleOf(other, values, /*transposed=*/true)));
    return isFolded && isPartOf(other, values);
  }

  std::vector<Held> held;
  std::vector<const Decision *> others;
};

} // namespace

std::vector<std::string> sharedRecurrent(const Decisions &decisions, const ModelFile &file,
                                         const Graph &graph) {
  return isFromPyTorch(file) ? SharedRecurrent(decisions, graph).pairs()
                             : std::vector<std::string>();
}

} // namespace trainc::reader
