// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with the options of a pass, in lines of one form (checked_pass.h).
#include "passes/options/checked_pass.h"
#include "dialects/errors/internal_error.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace trainc {

/// A value from a command line may hold anything.
static std::string onOneLine(StringRef text) {
  std::string shown;
  for (char c : text)
    shown += llvm::isPrint(c) || (c & 0x80) ? std::string(1, c)
                                            : "\\x" + llvm::toHex(StringRef(&c, 1), true);
  return shown;
}

void CheckedPass::checkPattern(OptionReader &reader, const TextOption &option) {
  if (!option.empty())
    (void)reader.pattern(option.ArgStr, option);
}

std::optional<name_pattern> CheckedPass::patternOf(const TextOption &option) {
  if (option.empty())
    return std::nullopt;
  OptionReader reader = silentReader();
  std::string why;
  std::optional<name_pattern> pattern =
      name_pattern::parse(reader.pattern(option.ArgStr, option), why);
  if (!pattern)
    internalError("a pattern of names was not checked: " + why);
  return pattern;
}

LogicalResult CheckedPass::initialize(MLIRContext *context) {
  // At no operation: MLIR would print it after the message, and it would be the module.
  OptionReader reader(kOfPass, [&](const OptionProblem &problem) {
    InFlightDiagnostic error = emitError(UnknownLoc::get(context));
    error << getArgument() << ": option '" << onOneLine(problem.option + "=" + problem.value)
          << "': " << onOneLine(problem.message);
    if (!problem.advice.empty())
      error.attachNote() << "try: " << problem.advice;
  });
  for (const TextOption *option : known)
    if (int count = option->getNumOccurrences(); count > 1)
      reader.complain(option->ArgStr, option->getValue(),
                      "is given " + Twine(count) + " times, expected once", "");
  if (reader.good())
    checkOptions(reader);
  return success(reader.good());
}

LogicalResult CheckedPass::initializeOptions(StringRef options,
                                             function_ref<LogicalResult(const Twine &)> complain) {
  // Else LLVM would have words of its own, without the pass, for these; help shows them as it is.
  for (TextOption *option : known) {
    option->setValueExpectedFlag(llvm::cl::ValueOptional);
    option->setNumOccurrencesFlag(llvm::cl::ZeroOrMore);
  }
  return Pass::initializeOptions(options, [&](const Twine &message) {
    std::string text = message.str();
    StringRef what = StringRef(text).trim();
    what.consume_front("<Pass-Options-Parser>: ");
    std::string names =
        llvm::join(llvm::map_range(known, [](TextOption *option) { return option->ArgStr; }), ", ");
    return complain(getArgument() + ": " + onOneLine(shortened(what)) + "; expected one of " +
                    names);
  });
}

} // namespace trainc
