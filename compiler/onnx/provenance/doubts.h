// SPDX-License-Identifier: Apache-2.0
//
// What the file does not tell of its initializers, or tells against what was decided. Each kind is
// one message: it names all tensors in doubt, why, and what answers it.
#pragma once

#include "compiler/findings.h"
#include "compiler/onnx/provenance/parameters.h"
#include "llvm/ADT/MapVector.h"

namespace trainc::reader {

class Doubts {
public:
  /// `why` reads the same for one tensor and for several.
  void add(Finding finding, llvm::StringRef name, const llvm::Twine &why);
  bool has(Finding finding, llvm::StringRef name) const;
  void report(const ModelFile &file, Report &report) const;

private:
  using NamesByReason =
      llvm::MapVector<std::string, std::vector<std::string>, llvm::StringMap<unsigned>>;
  static std::string listed(const NamesByReason &reasons);
  static std::vector<std::string> namesOf(const NamesByReason &reasons);

  llvm::MapVector<Finding, NamesByReason> found;
};

/// Filters that hold a folded norm, and functions of parameters that the file has, too: parts,
/// multiples, other axes. Values are compared, not interpreted.
void findFolded(const Decisions &decisions, const Graph &graph, Doubts &doubts);

/// Weights in the files of PyTorch's TorchScript exporter that it computed from parameters, as far
/// as their places and numbers tell; and those of which they do not tell.
void findComputed(const Decisions &decisions, const ModelFile &file, const Graph &graph,
                  Doubts &doubts);

/// Tensors that PyTorch's TorchScript exporter folded and no operator learns.
void findFoldedConstants(const Decisions &decisions, const ModelFile &file, const Graph &graph,
                         Doubts &doubts);

/// Equal weights of which PyTorch's TorchScript exporter brought one into the order of a recurrent
/// layer's gates, as texts of pairs: nothing would keep the two equal.
std::vector<std::string> sharedRecurrent(const Decisions &decisions, const ModelFile &file,
                                         const Graph &graph);

/// One number throughout is filling, unless something is calculated with it, also after views: it
/// may be what a parameter was computed into that starts so. PyTorch's exporters write filling as
/// ConstantOfShape: what they folded may be a token that is put beside others, or in their place.
bool isCalculatedWith(const Graph &graph, const Decision &decision, bool isFromPyTorch);

/// What code computes from positions; empty where the values are of no such kind.
llvm::StringRef seriesIn(const TensorBytes &tensor);

} // namespace trainc::reader
