// SPDX-License-Identifier: Apache-2.0
//
// Collects the user errors and warnings of a phase, so that all of them are printed at once.
#pragma once

#include "compiler/exit_codes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace trainc {

/// `'a', 'b' and 3 more`: the first `shown` of the names.
std::string quotedList(llvm::ArrayRef<std::string> names, size_t shown = 8);

/// What a problem is about: a file, an option, or a node of a model.
struct Subject {
  Subject(std::string text) : text(std::move(text)) {}
  Subject(llvm::StringRef text) : text(text.str()) {}
  Subject(const char *text) : text(text) {}
  Subject(const llvm::Twine &text) : text(text.str()) {}
  /// `FILE: node 'NODE' (OPERATOR)`; the operator with its opset
  Subject(std::string file, std::string node, std::string operatorText)
      : text(std::move(file)), node(std::move(node)), operatorText(std::move(operatorText)) {}

  std::string text; // of a node: the file
  std::string node, operatorText;
};

class Report {
public:
  /// Adds `<subject>: <message>` and, where given, an indented `try: <advice>`; fails always.
  llvm::LogicalResult error(ExitCode code, const Subject &subject, const llvm::Twine &message,
                            const llvm::Twine &advice = "");
  /// Adds `<subject>: warning: <message>`, which is no failure.
  void warning(const Subject &subject, const llvm::Twine &message, const llvm::Twine &advice = "");

  /// Of errors alone.
  bool empty() const { return errors == 0; }
  size_t size() const { return errors; }
  /// The first error's; ok where there is none.
  ExitCode exitCode() const { return firstCode; }
  /// In the order in which they came. Nodes of one operator with the same problem are told
  /// together.
  void print(llvm::raw_ostream &stream) const;
  std::string text() const;

private:
  struct Problem {
    Subject subject;
    std::vector<std::string> nodes;
    std::string message, advice;
  };
  /// False for one that is known already.
  bool add(const Subject &subject, const std::string &message, const llvm::Twine &advice);

  std::vector<Problem> problems;
  llvm::StringSet<> known;         // subjects with their messages
  llvm::StringMap<size_t> byCause; // problems of nodes by operator, message and advice
  size_t errors = 0;
  ExitCode firstCode = ExitCode::ok;
};

} // namespace trainc
