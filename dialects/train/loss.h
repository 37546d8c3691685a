// SPDX-License-Identifier: Apache-2.0
//
// What a loss answers. Each is one file in losses/, which registers it; options, messages, help and
// documentation come from the registry. What a recipe asks for is a LossTerm (loss_term.h).
#pragma once

#include "dialects/nn/builder.h"
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace trainc::train {

/// A number that a loss takes, with PyTorch's name and default.
struct LossSetting {
  enum Kind { number, integer, word, numbers, output };
  llvm::StringRef name;
  llvm::StringRef help;
  Kind kind = number;
  llvm::StringRef defaultValue =
      {}; // empty: none, which `numbers` may have; an `output` must be given
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool isAbove = false;                           // `least` itself is none
  llvm::ArrayRef<llvm::StringLiteral> words = {}; // those that a word is one of

  /// `a number from 0 to 1`
  std::string expectation() const;
};

/// The values of all settings of a loss.
class LossSettings {
public:
  double number(llvm::StringRef name) const { return values.at(name.str()).front(); }
  int64_t integer(llvm::StringRef name) const { return static_cast<int64_t>(number(name)); }
  llvm::ArrayRef<double> numbers(llvm::StringRef name) const { return values.at(name.str()); }
  llvm::StringRef word(llvm::StringRef name) const { return words.at(name.str()); }
  llvm::StringRef output(llvm::StringRef name) const { return words.at(name.str()); }
  /// Whether the loss has such numbers and they are given.
  bool hasNumbers(llvm::StringRef name) const {
    auto found = values.find(name.str());
    return found != values.end() && !found->second.empty();
  }

  /// False for what is not a number or word that the setting allows.
  bool set(const LossSetting &setting, llvm::StringRef text);
  bool set(const LossSetting &setting, std::vector<double> numbers);

private:
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, std::string> words;
};

/// The input that a loss compares an output with.
struct Labels {
  mlir::RankedTensorType type = {};    // null: the loss takes none
  std::optional<int64_t> bound = {};   // integers below it
  std::optional<int64_t> ignored = {}; // a label that counts nothing

  bool operator==(const Labels &) const = default;
};

/// What evaluation tells people besides the loss.
struct Metric {
  llvm::StringRef name; // `accuracy`
  /// A float for each label that is a class, else for each element of the output; its mean is
  /// shown.
  mlir::Value values;
};

/// What a loss is computed from.
struct LossInput {
  nn::Builder &builder;
  mlir::Value output;
  mlir::Value labels; // null where the loss takes none
  const LossSettings &settings;
  mlir::Value other = {}; // the output that a setting names, of the output's type
};

/// One of the two.
struct LossValue {
  mlir::Value scalar = {}; // the mean
  mlir::Value elements =
      {}; // what is reduced as the setting `reduction` says, the mean without one
};

struct Loss {
  llvm::StringRef name;
  llvm::StringRef description;
  std::vector<LossSetting> settings = {};
  /// For an output of this type. Where the loss cannot be computed from such an output, or not with
  /// these settings, `problem` says why: `needs an output of floats`.
  Labels (*labels)(mlir::RankedTensorType output, const LossSettings &settings,
                   std::string &problem) = nullptr;
  LossValue (*build)(const LossInput &input) = nullptr;
  /// Null where the loss alone tells.
  std::vector<Metric> (*buildMetrics)(const LossInput &input) = nullptr;
  /// Whether exp of the loss is a perplexity. Null: never.
  bool (*isLogPerplexity)(const LossSettings &settings) = nullptr;

  const LossSetting *findSetting(llvm::StringRef name) const;
  /// That which names another output; null where the loss is of one.
  const LossSetting *otherOutput() const;
};

struct LossRegistration {
  explicit LossRegistration(const Loss &loss);
};

/// Null where no loss has the name.
const Loss *findLoss(llvm::StringRef name);
/// All losses, by name.
std::vector<const Loss *> listLosses();

/// `reduction`: mean or sum over the samples of a step, of what divides by `batchmean` too.
LossSetting reductionSetting();
LossSetting reductionSettingWithBatchMean();

/// One axis of these numbers, each rounded to the element type.
mlir::Value constantNumbers(nn::Builder &builder, llvm::ArrayRef<double> numbers,
                            mlir::Type elementType);

/// Labels of the output's own type: of losses that compare numbers.
Labels labelsLikeOutput(mlir::RankedTensorType output, const LossSettings &settings,
                        std::string &problem);
/// Mean absolute and mean squared error of outputs that are to equal their labels.
std::vector<Metric> errorMetrics(const LossInput &input);
/// The share of outputs that are on the labels' side: above `threshold` where the label is above a
/// half.
std::vector<Metric> binaryAccuracy(const LossInput &input, double threshold);

} // namespace trainc::train
