// SPDX-License-Identifier: Apache-2.0
//
// The registry of losses, and what several share.
#include "dialects/train/loss.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;

namespace trainc::train {

static std::map<std::string, Loss> &losses() {
  static std::map<std::string, Loss> registered;
  return registered;
}

LossRegistration::LossRegistration(const Loss &loss) { losses()[loss.name.str()] = loss; }

const Loss *findLoss(StringRef name) {
  auto found = losses().find(name.str());
  return found == losses().end() ? nullptr : &found->second;
}

std::vector<const Loss *> listLosses() {
  std::vector<const Loss *> result;
  for (const auto &[name, loss] : losses())
    result.push_back(&loss);
  return result;
}

const LossSetting *Loss::findSetting(StringRef wanted) const {
  auto found =
      llvm::find_if(settings, [&](const LossSetting &setting) { return setting.name == wanted; });
  return found == settings.end() ? nullptr : &*found;
}

const LossSetting *Loss::otherOutput() const {
  auto found = llvm::find_if(
      settings, [](const LossSetting &setting) { return setting.kind == LossSetting::output; });
  return found == settings.end() ? nullptr : &*found;
}

// ---- settings

static std::string digits(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

std::string LossSetting::expectation() const {
  if (kind == word)
    return "one of " + llvm::join(words, ", ");
  if (kind == output)
    return "the name of an output";
  std::string text = kind == numbers   ? "numbers between commas, or FILE.npy"
                     : kind == integer ? "an integer"
                                       : "a number";
  bool isBounded = std::isfinite(least);
  if (kind == numbers && isBounded)
    text += ", each";
  if (isBounded && std::isfinite(most))
    return text + " from " + digits(least) + " to " + digits(most);
  return isBounded ? text + (isAbove ? " above " : " not below ") + digits(least) : text;
}

bool LossSettings::set(const LossSetting &setting, std::vector<double> numbers) {
  bool fits = llvm::all_of(numbers, [&](double number) {
    bool isInteger = setting.kind != LossSetting::integer ||
                     (std::trunc(number) == number && std::abs(number) < 0x1p53);
    return std::isfinite(number) && isInteger && number <= setting.most &&
           (setting.isAbove ? number > setting.least : number >= setting.least);
  });
  if (!fits || (numbers.size() != 1 && setting.kind != LossSetting::numbers))
    return false;
  values[setting.name.str()] = std::move(numbers);
  return true;
}

bool LossSettings::set(const LossSetting &setting, StringRef text) {
  if (setting.kind == LossSetting::word) {
    words[setting.name.str()] = text.str();
    return llvm::is_contained(setting.words, text);
  }
  if (setting.kind == LossSetting::output) {
    words[setting.name.str()] = text.str();
    return true;
  }
  std::vector<double> numbers;
  SmallVector<StringRef> parts;
  if (!text.empty() || setting.kind != LossSetting::numbers)
    text.split(parts, ',');
  for (StringRef part : parts)
    if (part.trim().getAsDouble(numbers.emplace_back()))
      return false;
  return set(setting, std::move(numbers));
}

static LossSetting reduction(ArrayRef<StringLiteral> words) {
  return {.name = "reduction",
          .help = "over all samples of a step, however it is split into micro-batches and ranks",
          .kind = LossSetting::word,
          .defaultValue = "mean",
          .words = words};
}

LossSetting reductionSetting() {
  static constexpr StringLiteral words[] = {"mean", "sum"};
  return reduction(words);
}

LossSetting reductionSettingWithBatchMean() {
  static constexpr StringLiteral words[] = {"mean", "sum", "batchmean"};
  return reduction(words);
}

Value constantNumbers(nn::Builder &builder, ArrayRef<double> numbers, Type elementType) {
  auto type = RankedTensorType::get({static_cast<int64_t>(numbers.size())}, elementType);
  auto rounded = llvm::map_to_vector(
      numbers, [&](double number) { return FloatAttr::get(elementType, number).getValue(); });
  return builder.constant(DenseElementsAttr::get(type, ArrayRef<APFloat>(rounded)));
}

// ---- labels and metrics

Labels labelsLikeOutput(RankedTensorType output, const LossSettings &, std::string &problem) {
  if (isa<FloatType>(output.getElementType()))
    return {output, {}, {}};
  problem = "needs an output of floats";
  return {};
}

std::vector<Metric> errorMetrics(const LossInput &input) {
  nn::Builder &builder = input.builder;
  Value error = builder.named("error", builder.sub(input.output, input.labels));
  return {{"mean_absolute_error", builder.create<nn::AbsOp>(error)},
          {"mean_squared_error", builder.mul(error, error)}};
}

std::vector<Metric> binaryAccuracy(const LossInput &input, double threshold) {
  nn::Builder &builder = input.builder;
  auto above = [&](Value x, double bound) {
    return builder.create<nn::GreaterOp>(x, builder.constant(bound, x.getType()));
  };
  Value predicted = builder.named("is_predicted", above(input.output, threshold));
  Value agrees = builder.create<nn::EqualOp>(predicted, above(input.labels, 0.5));
  auto type = cast<FloatType>(nn::tensorType(input.output).getElementType());
  return {{"accuracy", builder.cast(builder.named("is_correct", agrees), type)}};
}

} // namespace trainc::train
