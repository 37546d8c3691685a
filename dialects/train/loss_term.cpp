// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing the losses of a recipe.
#include "dialects/train/loss_term.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;

namespace trainc::train {
namespace {

/// So many digits that the same number is read again.
std::string exact(double number) {
  std::string shorter, text;
  llvm::raw_string_ostream(shorter) << llvm::format("%.6g", number);
  double read = 0;
  if (!StringRef(shorter).getAsDouble(read) && read == number)
    return shorter;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", number);
  return text;
}

std::string exact(ArrayRef<double> numbers) {
  return llvm::join(llvm::map_range(numbers, [](double number) { return exact(number); }), ",");
}

std::string namesOf(ArrayRef<LossSetting> settings) {
  return llvm::join(
      llvm::map_range(settings, [](const LossSetting &setting) { return setting.name; }), ", ");
}

class TermParser {
public:
  TermParser(NumberReader readNumbers, LossProblem &problem)
      : readNumbers(readNumbers), problem(problem) {}

  std::optional<LossTerm> run(StringRef text) {
    if (!findLoss(text))
      return std::nullopt;
    for (const LossSetting &setting : term.loss->settings)
      if (setting.kind == LossSetting::numbers || !setting.defaultValue.empty())
        term.settings.set(setting, setting.defaultValue);
    if (!takeFactor() || !splitSettings())
      return std::nullopt;
    for (auto &[setting, value] : given)
      if (!set(*setting, value))
        return std::nullopt;
    const LossSetting *other = term.loss->otherOutput();
    if (other && !llvm::is_contained(llvm::make_first_range(given), other)) {
      (void)fail("loss '" + term.loss->name + "' is of two outputs, and " + other->name +
                     " does not name the second",
                 term.loss->name + "," + other->name + "=OUTPUT");
      return std::nullopt;
    }
    return term;
  }

private:
  bool fail(const Twine &message, const Twine &advice) {
    problem = {message.str(), advice.str()};
    return false;
  }

  /// Names that begin alike are told apart by what follows.
  static const Loss *lossAt(StringRef text) {
    StringRef name = text.take_until([](char c) { return c == ',' || c == '*' || c == '='; });
    bool isOutput = text.drop_front(name.size()).starts_with("=");
    return isOutput ? nullptr : train::findLoss(name);
  }

  bool findLoss(StringRef text) {
    for (size_t at = 0; at <= text.size() && !term.loss;) {
      if (const Loss *loss = lossAt(text.drop_front(at))) {
        term.loss = loss;
        term.output = at > 0 ? text.take_front(at - 1).str() : "";
        rest = text.drop_front(at + loss->name.size());
      }
      at = text.find('=', at);
      at = at == StringRef::npos ? text.size() + 1 : at + 1;
    }
    if (term.loss)
      return true;
    std::vector<std::string> names;
    for (const Loss *loss : listLosses())
      names.push_back(loss->name.str());
    return fail("names no loss, found '" + text + "'",
                "[OUTPUT=]NAME[,SETTING=VALUE...][*FACTOR], with NAME one of " +
                    llvm::join(names, ", "));
  }

  bool takeFactor() {
    size_t star = rest.rfind('*');
    if (star == StringRef::npos)
      return true;
    StringRef number = rest.drop_front(star + 1);
    bool isNumber = !number.getAsDouble(term.factor);
    if (!isNumber) {
      term.factor = 1;
      return star != 0 || fail("loss '" + term.loss->name + "' has the factor '" + number +
                                   "', which is not a number",
                               term.loss->name + "*0.5");
    }
    rest = rest.take_front(star);
    if (std::isfinite(term.factor) && term.factor != 0)
      return true;
    return fail("loss '" + term.loss->name + "' has the factor " + number, "a finite one, not 0");
  }

  bool splitSettings() {
    SmallVector<StringRef> parts;
    if (rest.consume_front(","))
      rest.split(parts, ',');
    else if (!rest.empty())
      parts.push_back(rest);
    for (StringRef part : parts) {
      auto [name, value] = part.split('=');
      const LossSetting *setting = term.loss->findSetting(name);
      bool goesOn = !part.contains('=') && !given.empty();
      if (goesOn) {
        given.back().second += "," + part.str();
        continue;
      }
      if (!part.contains('='))
        return fail("loss '" + term.loss->name + "' is followed by '" + part +
                        "', expected SETTING=VALUE",
                    adviceOnSettings());
      if (!setting)
        return fail("loss '" + term.loss->name + "' has no setting '" + name + "'",
                    adviceOnSettings());
      if (llvm::is_contained(llvm::make_first_range(given), setting))
        return fail(name + " of loss '" + term.loss->name + "' is given twice", "one of the two");
      given.emplace_back(setting, value.str());
    }
    return true;
  }

  std::string adviceOnSettings() const {
    return term.loss->settings.empty() ? term.loss->name.str() + " without settings"
                                       : "one of " + namesOf(term.loss->settings);
  }

  bool set(const LossSetting &setting, const std::string &value) {
    std::string unread, canonical = value;
    bool fits = false;
    if (setting.kind == LossSetting::numbers && StringRef(value).ends_with(".npy")) {
      std::vector<double> numbers = readNumbers(value, unread);
      if (!unread.empty())
        return fail(unread, setting.name + " of loss '" + term.loss->name + "' with " +
                                setting.expectation());
      canonical = exact(numbers);
      fits = !numbers.empty() && term.settings.set(setting, std::move(numbers));
    } else {
      fits = !value.empty() && term.settings.set(setting, value);
      if (fits && setting.kind != LossSetting::word && setting.kind != LossSetting::output)
        canonical = exact(term.settings.numbers(setting.name));
    }
    if (!fits)
      return fail(setting.name + " of loss '" + term.loss->name + "' expects " +
                      setting.expectation() + "; found '" + value + "'",
                  setting.kind == LossSetting::output ? setting.name + "=OUTPUT"
                  : setting.defaultValue.empty()
                      ? setting.name + "=1,2.5"
                      : setting.name + "=" + setting.defaultValue + ", which is the default");
    if (canonical != setting.defaultValue)
      term.given += (term.given.empty() ? "" : ",") + setting.name.str() + "=" + canonical;
    return true;
  }

  NumberReader readNumbers;
  LossProblem &problem;
  LossTerm term;
  StringRef rest; // after the name
  std::vector<std::pair<const LossSetting *, std::string>> given;
};

/// `delta=1: the error where the square ends, a number above 0`
std::string describe(const LossSetting &setting) {
  return setting.help.str() + "; " + setting.expectation() +
         (setting.defaultValue.empty() ? "" : " (default " + setting.defaultValue.str() + ")");
}

} // namespace

std::string LossTerm::name() const { return loss->name.str() + (given.empty() ? "" : "," + given); }

std::string LossTerm::text() const {
  return (output.empty() ? "" : output + "=") + name() + (factor == 1 ? "" : "*" + exact(factor));
}

std::optional<LossTerm> parseLossTerm(StringRef text, NumberReader readNumbers,
                                      LossProblem &problem) {
  return TermParser(readNumbers, problem).run(text);
}

std::string lossHelp() {
  std::string text = "\nLosses and their settings:\n";
  for (const Loss *loss : listLosses()) {
    text += "  " + loss->name.str() + ": " + loss->description.str() + "\n";
    for (const LossSetting &setting : loss->settings)
      text += "    " + setting.name.str() + ": " + describe(setting) + "\n";
  }
  return text;
}

std::string lossDocumentation() {
  std::string text = "| loss | setting | meaning |\n|---|---|---|\n";
  for (const Loss *loss : listLosses()) {
    text += "| `" + loss->name.str() + "` | | " + loss->description.str() + " |\n";
    for (const LossSetting &setting : loss->settings)
      text += "| | `" + setting.name.str() + "` | " + describe(setting) + " |\n";
  }
  return text;
}

} // namespace trainc::train
