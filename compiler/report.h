// SPDX-License-Identifier: Apache-2.0
//
// Collects the user errors and warnings of a phase, so that all of them are printed at once.
#pragma once

#include "compiler/exit_codes.h"
#include "compiler/findings.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>
#include <vector>

namespace trainc {

/// Text of a file as a terminal may show it: control characters, those that turn the direction of
/// writing, and bytes that are not UTF-8 as \x1b.
std::string printable(llvm::StringRef text);

/// What is said of a node whose operator no importer serves.
inline constexpr const char *kUnsupportedOperator = "unsupported operator";

/// What helps against that in general.
inline constexpr const char *kListsOperators =
    "trainc --list-operators, which prints what can be imported";

/// A word of a command to copy: between quotes, always or where a shell would read it otherwise.
std::string quotedForShell(llvm::StringRef word);
std::string forShell(llvm::StringRef word);

/// `'a', 'b' and 3 more`: the first `shown` of the names.
std::string quotedList(llvm::ArrayRef<std::string> names, size_t shown = 8);

/// What a problem is about: a file, a part or a node of the model in it, an option, or the program
/// as it was called.
struct Subject {
  Subject(std::string file) : file(std::move(file)) {}
  Subject(llvm::StringRef file) : file(file.str()) {}
  Subject(const char *file) : file(file) {}
  Subject(const llvm::Twine &file) : file(file.str()) {}
  /// `FILE: node 'NODE' (OPERATOR, opset OPSET)`; what is empty or 0 is left out
  Subject(std::string file, std::string node, std::string operatorName, int opset)
      : file(std::move(file)), node(std::move(node)), operatorName(std::move(operatorName)),
        opset(opset) {}
  /// `FILE: PART`, such as `input 'x'`
  static Subject ofPart(std::string file, std::string part);
  /// `--dim`, or with a file that it is about `--buffer: FILE`
  static Subject ofOption(const llvm::Twine &name, std::string file = "");
  /// Of the command line as a whole.
  static Subject ofProgram(const llvm::Twine &name);

  std::string file, part;
  std::string node, operatorName;
  int opset = 0;
  std::string option, program;
};

/// How problems are written: for people; a JSON object a line; or one SARIF document.
/// docs/messages.md describes the latter two.
enum class MessageFormat { text, json, sarif };

std::optional<MessageFormat> parseMessageFormat(llvm::StringRef name);

class Report {
public:
  /// Adds `<subject>: <message>` and, where given, an indented `try: <advice>`; fails always.
  llvm::LogicalResult error(ExitCode code, const Subject &subject, const llvm::Twine &message,
                            const llvm::Twine &advice = "");
  /// The same for a model that is not supported because of a finding, whose name the text ends
  /// with. Of an accepted finding nothing is added, and it succeeds: the file is taken as it
  /// stands.
  llvm::LogicalResult refuse(Finding finding, const Subject &subject, const llvm::Twine &message,
                             const llvm::Twine &advice);
  /// Adds `<subject>: warning: <message> [<name>]`, which is not a failure. Of an accepted finding
  /// nothing is added.
  void warning(Finding finding, const Subject &subject, const llvm::Twine &message,
               const llvm::Twine &advice = "");
  /// This finding is not a problem from here on.
  void accept(Finding finding) { accepted.push_back(finding); }

  /// Problems that come later and name `path`, which people do not know, or a file in it, name
  /// `known` instead.
  void showAs(std::string path, std::string known);

  /// Of errors alone.
  bool empty() const { return errors == 0; }
  size_t size() const { return errors; }
  /// The first error's; ok where there is none.
  ExitCode exitCode() const { return firstCode; }
  /// In the order in which they came. Nodes of one operator with the same problem are told
  /// together; in text also more than three of one kind, which differ in names and numbers alone.
  void print(llvm::raw_ostream &stream, MessageFormat format = MessageFormat::text) const;
  std::string text() const;
  /// A row for each kind of problem, those of most nodes first, and what would help against each.
  void printTable(llvm::raw_ostream &stream) const;

private:
  struct Problem {
    Subject subject;
    std::vector<std::string> nodes;
    std::string message, advice;
    ExitCode code; // ok: a warning
    std::optional<Finding> finding;

    /// As it is printed: with the finding's name.
    std::string text() const;
  };
  /// False for one that is known already.
  bool add(Problem problem);
  llvm::LogicalResult addError(Problem problem);
  /// Problems that are told together, in the order of their first.
  using Kind = std::vector<const Problem *>;
  std::vector<Kind> kinds() const;
  static std::vector<std::string> namesOf(const Kind &kind);
  /// The first, and how many are alike.
  static void printProblem(llvm::raw_ostream &stream, const Kind &alike);
  void printText(llvm::raw_ostream &stream) const;
  void printJson(llvm::raw_ostream &stream) const;
  void printSarif(llvm::raw_ostream &stream) const;

  std::string shown(llvm::StringRef text) const;

  std::vector<Problem> problems;
  std::vector<Finding> accepted;
  std::string unknownPath, knownPath;
  llvm::StringSet<> known;         // subjects with their messages
  llvm::StringMap<size_t> byCause; // problems of nodes by operator, message and advice
  size_t errors = 0;
  ExitCode firstCode = ExitCode::ok;
};

} // namespace trainc
