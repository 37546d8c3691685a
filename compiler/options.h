// SPDX-License-Identifier: Apache-2.0
//
// Options of trainc as parsed from the command line; options.def is the table.
#pragma once

#include "compiler/recipe.h"
#include "compiler/report.h"
#include "passes/options/option_reader.h"
#include "passes/passes.h"
#include "runtime/ranks/rank_memory.h"
#include <optional>
#include <string>
#include <vector>

namespace trainc {

struct Options {
  std::string model;              // the positional argument
  std::vector<std::string> given; // names of the options on the command line
#define SECTION(title)
#define TEXT(member, name, value, default_, help) std::string member = default_;
#define LIST(member, name, value, help) std::vector<std::string> member;
#define FLAG(member, name, help) bool member = false;
#define CHOICE(member, name, value, help) std::string member;
#include "compiler/options.def"
#undef SECTION
#undef TEXT
#undef LIST
#undef FLAG
#undef CHOICE

  /// The training recipe; nothing where a value is malformed or nothing would look at an option,
  /// which `report` says.
  std::optional<Recipe> recipe(Report &report) const;

  /// What the backward pass computes again; nothing where a value is malformed, which `report`
  /// says.
  std::optional<RecomputeOptions> recomputeOptions(Report &report) const;

  /// How a step is cut; nothing where a value is malformed, which `report` says.
  std::optional<StageOptions> stageOptions(Report &report) const;
  /// How the trainer will be started; nothing where it is not said, or malformed, which `report`
  /// says.
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
  /// Checks values as the passes do.
  static OptionReader readerInto(Report &report);
  void readLosses(Recipe &recipe, Report &report) const;
  void readAdapters(Recipe &recipe, Report &report) const;
  void checkChoices(Report &report) const;
  void checkStage(const Recipe &recipe, Report &report) const;
  void checkUpdateInBackward(Report &report) const;
  /// `stages`: all that --stop-after may name.
  void refuseIdleOptions(llvm::ArrayRef<std::string> stages, Report &report) const;
};

/// Parses the command line. Of a wrong one `report` says what is wrong, and nothing is returned;
/// `--help` and `--version` print and exit with 0.
std::optional<Options> parseOptions(int argc, char **argv, Report &report);

/// How a command line that may be wrong wants its messages.
MessageFormat messageFormatAmong(int argc, char **argv);

/// The table as Markdown: docs/trainc.md.
std::string optionsDocumentation();

} // namespace trainc
