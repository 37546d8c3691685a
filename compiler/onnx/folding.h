// SPDX-License-Identifier: Apache-2.0
//
// Evaluates nodes whose inputs are known while the model is read.
#pragma once

#include "compiler/onnx/graph.h"
#include "compiler/onnx/host_tensor.h"

namespace trainc::reader {

using Folded = std::optional<std::vector<Constant>>; // one per output

/// What a folding rule sees. An absent input is null.
struct FoldNode {
  const GraphNode &node;
  llvm::ArrayRef<Constant> inputs;

  bool has(unsigned index) const { return index < inputs.size() && inputs[index]; }
  const HostTensor &input(unsigned index) const { return *inputs[index]; }
  /// Axes or the like: input `index`, else the attribute; nullopt where neither is there.
  std::optional<llvm::SmallVector<int64_t>> integers(unsigned index,
                                                     llvm::StringRef attribute) const;
};

using FoldRule = Folded (*)(const FoldNode &);

/// True for operators that have a rule.
bool canFold(const GraphNode &node);

/// Null where the operator has no rule, or the rule refuses the inputs. Rules do not report:
/// the operator's importer, which is tried next, does.
Folded fold(const GraphNode &node, llvm::ArrayRef<Constant> inputs);

/// Registers a rule; static objects at the end of the file that holds it.
struct FoldRegistration {
  FoldRegistration(std::initializer_list<llvm::StringRef> opTypes, FoldRule rule);
};

inline Folded single(Constant value) {
  if (!value)
    return std::nullopt;
  return std::vector<Constant>{std::move(value)};
}

std::optional<llvm::SmallVector<int64_t>> broadcastShape(llvm::ArrayRef<int64_t> a,
                                                         llvm::ArrayRef<int64_t> b);

/// Strides of `shape`, row-major.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);

/// `source[offset + sum index_d * strides_d]` for all indices of `shape` in order; the general form
/// of every movement of data. Offsets must be within the source.
Constant gatherStrided(const HostTensor &source, llvm::ArrayRef<int64_t> shape, int64_t offset,
                       llvm::ArrayRef<int64_t> strides);

/// The tensor repeated to `shape`, which it must fit; null where that is too large.
Constant broadcastConstant(const Constant &source, llvm::ArrayRef<int64_t> shape);

/// Brings a negative axis into range; nullopt where it is out of range.
std::optional<int64_t> normalAxis(int64_t axis, int64_t rank);

/// Like `source` with another shape of as many elements.
Constant reshaped(const HostTensor &source, llvm::ArrayRef<int64_t> shape);

/// Values converted to another element type.
Constant converted(const HostTensor &source, Element element);

} // namespace trainc::reader
