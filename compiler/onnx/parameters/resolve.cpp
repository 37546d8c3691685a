// SPDX-License-Identifier: Apache-2.0
//
// What claims ask for: an initializer of its own for each parameter, statistic or constant that
// shares one, with the merged values; and zeros for a bias that is gone. Changes nothing.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

std::string apartFrom(StringRef other) {
  return ("the exporter merged it with " + other + ", which was equal: apart again").str();
}

static int64_t attributeOf(const onnx::NodeProto &node, StringRef name, int64_t otherwise) {
  const auto found = find_if(node.attribute(), [&](const auto &one) { return one.name() == name; });
  return found == node.attribute().end() ? otherwise : found->i();
}

std::optional<int64_t> outputsOf(const onnx::NodeProto &node, ArrayRef<int64_t> weight) {
  if (weight.size() == 2 && (isOnnx(node, "MatMul") || isOnnx(node, "Gemm")))
    return weight[attributeOf(node, "transB", 0) ? 0 : 1];
  if (weight.size() > 2 && isOnnx(node, "ConvTranspose"))
    return weight[1] * attributeOf(node, "group", 1);
  return weight.size() > 2 && isOnnx(node, "Conv") ? std::optional(weight[0]) : std::nullopt;
}

namespace {

class Resolver {
public:
  Resolver(const ModelFile &file, const Ledger &ledger, ArrayRef<Claim> claims)
      : file(file), program(ledger.program), claims(claims) {
    findStatistics();
  }

  Changes run() {
    for (const Claim &claim : claims) // constants may be merged with these
      if (claim.form == Form::stacked)
        giveStack(claim);
    for (const Claim &claim : claims)
      if (claim.form == Form::zeros)
        addZeros(claim);
      else if (claim.form == Form::statistic)
        giveStatistic(claim);
      else if (claim.form == Form::constant)
        giveConstant(claim);
      else if (claim.form != Form::stacked && !isOwn(claim))
        giveParameter(claim);
    return std::move(changes);
  }

private:
  static const std::string &readBy(const Claim &claim) { return claim.node->input(claim.input); }

  static bool isStatistic(const onnx::NodeProto &node, int input) {
    return weightOf(node, input, {}) == nn::OnnxWeight::statistic;
  }

  // Which tensors norms read as statistics once all claims are met.
  void findStatistics() {
    std::set<std::pair<const onnx::NodeProto *, int>> claimed;
    for (const Claim &claim : claims)
      if (claim.form == Form::statistic) {
        claimed.insert({claim.node, claim.input});
        statistics.insert(claim.tensors[0]);
      }
    for (const onnx::NodeProto &node : file.graph().node())
      for (int i = 0; i < node.input_size(); ++i)
        if (isStatistic(node, i) && !claimed.count({&node, i}))
          statistics.insert(node.input(i));
  }

  bool isOwn(const Claim &claim) const {
    const std::string &name = readBy(claim), &parameter = claim.tensors[0];
    return (name == parameter && program.kindOf(name) == "PARAMETER") ||
           (program.isParameter(parameter) && is_contained(program.sourcesOf(name), parameter));
  }

  /// The claim's node reads a copy of what it reads now, under this name.
  Change &give(const Claim &claim, std::string name, std::string origin) {
    const TensorBytes *values = file.find(name) ? nullptr : file.find(readBy(claim));
    changes.push_back({.tensor = values ? sharedCopy(*values, name) : nullptr,
                       .origin = std::move(origin),
                       .user = claim.node,
                       .input = claim.input,
                       .reads = std::move(name)});
    return changes.back();
  }

  void giveParameter(const Claim &claim) {
    const std::string from = readBy(claim), &parameter = claim.tensors[0];
    if (!claim.function.empty()) {
      std::vector<std::string> sources = program.sourcesOf(from).vec();
      for (std::string &source : sources)
        if (program.isParameter(source))
          source = parameter;
      give(claim, claim.function, "merged with " + from + ", which was equal: apart again")
          .sources = sources.empty() ? claim.tensors : sources;
      return;
    }
    const bool isSame = claim.form == Form::same;
    Change &change = give(claim,
                          parameter + (isSame                           ? ""
                                       : claim.form == Form::transposed ? kTransposed
                                                                        : kReshaped),
                          apartFrom(from));
    if (isSame)
      change.kind = "PARAMETER";
    else
      change.sources = claim.tensors;
  }

  void giveStatistic(const Claim &claim) {
    const std::string from = readBy(claim);
    if (from != claim.tensors[0])
      give(claim, claim.tensors[0], apartFrom(from)).kind = "BUFFER";
  }

  // A constant that was merged with a parameter must not be trained with it, nor one that was
  // merged with running statistics be replaced with them.
  void giveConstant(const Claim &claim) {
    const std::string from = readBy(claim);
    const bool isTrained = program.kindOf(from) == "PARAMETER" || stacked.count(from);
    if (isTrained || (statistics.count(from) && !isStatistic(*claim.node, claim.input)))
      give(claim, from + ".constant", "a constant which the exporter merged with " + from);
  }

  // ONNX's LSTM and GRU have the gates in another order than PyTorch, and the parameters of all
  // directions, and both biases, in one tensor each: trained in that place they are what they would
  // be in the module, with any update of single elements. The first node whose parameters the
  // tensor was made from keeps it. All else it may be made from are sizes; those may come from
  // further parameters, such as learnt initial states.
  void giveStack(const Claim &claim) {
    const std::string from = readBy(claim);
    bool anyOrigin = false;
    for (const std::string &source : program.sourcesOf(from))
      if (program.isParameter(source))
        anyOrigin = true;
      else if (!isMadeBy(source, kNumbers))
        return;
    if (!anyOrigin)
      return; // what cannot be told is refused as computed from several parameters
    const bool isOwn = all_of(claim.tensors, [&](const std::string &one) {
      return is_contained(program.sourcesOf(from), one);
    });
    auto held = stacked.find(from);
    if (held == stacked.end() && isOwn) {
      stacked[from] = claim.tensors;
      changes.push_back({.stacked = claim.tensors, .reads = from});
    } else if (held == stacked.end() || held->second != claim.tensors) {
      Change &change = give(claim, claim.tensors[0] + ".stacked", apartFrom(from));
      change.sources = change.stacked = claim.tensors;
    }
  }

  void addZeros(const Claim &claim) {
    Change &change = changes.emplace_back(
        Change{.user = claim.node, .input = claim.input, .reads = claim.tensors[0]});
    if (file.find(change.reads))
      return;
    const TensorBytes &weight = *file.find(claim.node->input(1));
    const int64_t outputs = *outputsOf(*claim.node, weight.shape);
    change.tensor = ownTensor(change.reads, weight.dataType, {outputs},
                              std::string(outputs * elementBytes(weight.dataType), '\0'));
    change.origin = "zeros, which the exporter had taken out: back again";
    change.kind = "PARAMETER";
  }

  const ModelFile &file;
  const ExportedProgram &program;
  ArrayRef<Claim> claims;
  std::set<std::string> statistics;
  std::map<std::string, std::vector<std::string>> stacked;
  Changes changes;
};

} // namespace

Changes resolve(const ModelFile &file, const Ledger &ledger, ArrayRef<Claim> claims) {
  return Resolver(file, ledger, claims).run();
}

} // namespace trainc::reader
