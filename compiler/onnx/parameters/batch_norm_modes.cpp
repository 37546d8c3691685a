// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's default exporter writes every batch norm in inference mode, and records the call that
// it was made from, which says the mode of the module. Other files have it in the node.
#include "compiler/onnx/parameters/batch_norm_modes.h"
#include "runtime/name_pattern.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

using nn::BatchNormMode;

static bool isBatchNorm(const GraphNode *node) { return isOnnx(*node, "BatchNormalization"); }

// batch_norm(input, weight, bias, mean, variance, training, ...), and its kin.
static bool saysTraining(const GraphNode &node, const ExportedProgram &program) {
  const ProgramCall *call = program.callOf(*node.proto);
  if (call && call->is("aten._native_batch_norm_legit_no_training"))
    return false;
  if (call && call->isBatchNorm() && call->arguments.size() > 5)
    return call->arguments[5] == "True";
  return nn::saysBatchStatistics(node.opset, node.integer("training_mode", 0),
                                 node.integer("is_test", 0), node.outputs.size());
}

static BatchNormMode modeOf(StringRef word, const GraphNode &node, const ExportedProgram &program) {
  if (word == "file")
    return saysTraining(node, program) ? BatchNormMode::train : BatchNormMode::frozen;
  return word == "frozen"      ? BatchNormMode::frozen
         : word == "all-ranks" ? BatchNormMode::trainAllRanks
                               : BatchNormMode::train;
}

static std::string nameOf(const GraphNode &node) {
  return node.path && !node.path->empty() ? *node.path : node.label;
}

BatchNormModes::BatchNormModes(const ModelFile &file, const Graph &graph,
                               const ExportedProgram &program, const Recipe &recipe, Report &report)
    : all(BatchNormMode::file) {
  if (!recipe.trains)
    return;
  std::vector<std::string> frozen;
  size_t trained = 0;
  for (const GraphNode *node : make_filter_range(graph.nodes(), isBatchNorm)) {
    own[node->key()] = modeOf(recipe.batchNorm, *node, program);
    if (saysTraining(*node, program))
      ++trained;
    else
      frozen.push_back(nameOf(*node));
  }
  if (!recipe.choosesBatchNorm) {
    const bool isMixed = trained > 0 && !frozen.empty();
    const bool saysAll = isMixed || program.isOfTrainc(); // which exports a module in train()
    for (const GraphNode *node : make_filter_range(graph.nodes(), isBatchNorm))
      own[node->key()] = saysAll || saysTraining(*node, program) ? modeOf("file", *node, program)
                                                                 : BatchNormMode::trainByDefault;
    if (isMixed && !program.isOfTrainc() && recipe.batchNormOf.empty())
      report.warning(Finding::batchNormMode, file.path(),
                     "the file has batch norms in both modes: " + quotedList(frozen, 3) +
                         (frozen.size() == 1 ? " keeps its" : " keep their") +
                         " running statistics, as in eval(); the others train",
                     "--batch-norm file, which says that this is meant; or --batch-norm "
                     "train|frozen, for all");
  }
  for (const auto &[pattern, mode] : recipe.batchNormOf)
    choose(graph, pattern, mode, program, report);
}

void BatchNormModes::choose(const Graph &graph, const std::string &pattern, const std::string &mode,
                            const ExportedProgram &program, Report &report) {
  std::string why;
  std::optional<name_pattern> modules = name_pattern::parse(pattern, why);
  if (!modules) {
    (void)report.error(ExitCode::usage, Subject::ofOption("--batch-norm-of"),
                       "'" + pattern + "' is not a regular expression: " + why);
    return;
  }
  bool any = false;
  std::vector<std::string> names;
  for (const GraphNode *node : make_filter_range(graph.nodes(), isBatchNorm)) {
    names.push_back(nameOf(*node));
    if (names.back().empty() || !modules->matches(names.back()))
      continue;
    own[node->key()] = modeOf(mode, *node, program);
    any = true;
  }
  if (any)
    return;
  (void)report.error(ExitCode::usage, Subject::ofOption("--batch-norm-of"),
                     "'" + pattern + "' matches no batch norm",
                     names.empty() ? "the model without it: it has none"
                                   : "a pattern of whole names: " + quotedList(names, 5));
}

BatchNormMode BatchNormModes::of(const GraphNode &node) const {
  auto found = own.find(node.key());
  return found == own.end() ? all : found->second;
}

} // namespace trainc::reader
