// SPDX-License-Identifier: Apache-2.0
//
// One loss of a recipe as text: `[OUTPUT=]NAME[,SETTING=VALUE...][*FACTOR]`, which the option
// --loss and the module's attribute `train.losses` hold.
#pragma once

#include "dialects/train/loss.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>

namespace trainc::train {

/// The loss of a recipe that names none.
constexpr llvm::StringLiteral kDefaultLoss = "cross_entropy";

struct LossTerm {
  std::string output; // of the model; empty: its only one
  const Loss *loss = nullptr;
  LossSettings settings; // all of the loss
  std::string given;     // those that differ from their defaults: `delta=2,reduction=sum`
  double factor = 1;

  /// What parseLossTerm reads.
  std::string text() const;
  /// What it is called without output and factor.
  std::string name() const;
};

struct LossProblem {
  std::string message; // `loss 'mse' has no setting 'beta'`
  std::string advice;
};

/// Reads the numbers of FILE.npy, or says why it cannot.
using NumberReader =
    llvm::function_ref<std::vector<double>(const std::string &path, std::string &problem)>;

/// The loss is the first known name at the beginning or after an `=`, so that an output's name may
/// hold equals signs, commas and stars; the factor is what follows the last `*`, where it is a
/// number. A part without `=` goes on with the setting before it. Null after a problem.
std::optional<LossTerm> parseLossTerm(llvm::StringRef text, NumberReader readNumbers,
                                      LossProblem &problem);

/// Name, description and settings of every loss: for --help.
std::string lossHelp();
/// All losses as Markdown.
std::string lossDocumentation();

} // namespace trainc::train
