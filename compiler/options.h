// SPDX-License-Identifier: Apache-2.0
//
// Options of trainc as parsed from the command line; option_rows.cpp is the table.
#pragma once

#include "compiler/recipe.h"
#include "compiler/report.h"
#include "passes/passes.h"
#include "runtime/ranks/rank_memory.h"
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace trainc {

struct Options {
  std::string model;           // the positional argument
  std::set<std::string> given; // names of the options on the command line
  Recipe asked;                // what rows read straight into it
  rank_layout startedAs;       // --run-with
  // Of the options whose values the recipe has in another form, as they were given.
  std::map<std::string, std::vector<std::string>> lists;

  std::string batch;
  std::string optimizer = "adamw", stateType = "f32";
  bool updatesInBackward = false, noPredictions = false, ema = false, forwardOnly = false;
  std::vector<std::string> lora;
  std::string loraRank = "8", loraAlpha = "8", loraDropout = "0"; // where --lora has none
  std::vector<std::string> operators;                             // manifests

  std::string output;
  std::string march = "native";
  std::string compiler = "g++", nvcc = "nvcc", cudaArchitectures = "80,90,100";
  bool noEpilogues = false, sourceOnly = false, bundle = false;
  std::string library, targetTriple;
  std::string depfile, depfileTarget;

  std::string limitMemory, memoryBudget, rowChunk;
  std::string recompute = "none";
  std::vector<std::string> recomputePatterns;
  bool memoryCurve = false;
  std::string shard = "none";

  std::string stages = "1", schedule = "1f1b", chunksPerStage = "2", microBatches;
  std::vector<std::string> cuts;

  std::string gradientGraph, dumpIr, stopAfter;
  bool printIr = false, check = false, printParameters = false;
  bool listOperators = false, printDocumentation = false, quiet = false;
  std::string messageFormat = "text";
  std::vector<std::string> accepted; // names of findings

  // Nothing where something is wrong, which `report` says.
  /// The training recipe. Refuses what contradicts and what nothing would look at.
  std::optional<Recipe> recipe(Report &report) const;
  /// What the backward pass computes again.
  std::optional<RecomputeOptions> recomputeOptions(Report &report) const;
  /// How a step is cut.
  std::optional<StageOptions> stageOptions(Report &report) const;
  /// How the trainer will be started; nothing too where it is not said.
  std::optional<rank_layout> runLayout(Report &report) const;
  /// Tells the report whose warnings --accept turns off.
  void acceptFindings(Report &report) const;

  /// Whether no rank of the trainer keeps all gradients.
  bool shardsGradients() const { return shard == "gradients"; }
  /// Whether the emitted source is compiled and linked, where the command makes an output at all.
  bool compiles() const { return !sourceOnly && stopAfter != "emit"; }
  /// Whether a library is made in place of a trainer.
  bool isMinimal() const { return library == "minimal"; }

private:
  void completeAdapters(Recipe &recipe, Report &report) const;
  bool checkStopAfter(const Recipe &recipe, Report &report) const;
};

/// What a command line asks for.
struct CommandLine {
  std::optional<Options> options; // nothing where it is wrong
  std::string page;               // of --help, or empty
  bool wantsVersion = false;
};

/// Parses the command line. Of a wrong one `report` says everything that is wrong.
CommandLine parseOptions(int argc, char **argv, Report &report);

/// How a command line that may be wrong wants its messages.
MessageFormat messageFormatAmong(int argc, char **argv);

/// The table as Markdown: docs/trainc.md.
std::string optionsDocumentation();

} // namespace trainc
