// SPDX-License-Identifier: Apache-2.0
//
// Text of emitted sources: indentation, identifiers, comments, literals. Every
// byte that comes from a model passes through one of these functions, so that no
// name can end a comment, a literal or a line.
#pragma once

#include "dialects/names/unique_names.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace trainc {

/// A blank at which a comment is not broken.
constexpr char kNoBreak = '\x01';

/// Stands before an identifier whose spelling follows from the model's names, until `resolved`.
constexpr char kChosenName = '\x02';

/// Lines of C++ with two blanks per open brace. `line` takes one line without
/// its end; a line ending in `{` opens, one beginning with `}` closes.
class SourceWriter {
public:
  void line(const llvm::Twine &text = "");
  /// A line at the left margin (preprocessor directives).
  void directive(const llvm::Twine &text);
  /// `head(a, b, c)tail`, broken and aligned where it exceeds 100 columns.
  void call(llvm::StringRef head, llvm::ArrayRef<std::string> arguments, llvm::StringRef tail);
  /// A comment with `text` broken at blanks.
  void comment(llvm::StringRef text);
  /// Indents one more line without a brace (the body of a braceless loop).
  void indent() { ++depth; }
  void outdent() { --depth; }
  /// A namespace, whose lines are not indented.
  void openNamespace(llvm::StringRef name);
  void closeNamespace(llvm::StringRef name);
  const std::string &text() const { return out; }
  /// Of what was printed. Names that are resolved later change none.
  int lines() const { return lineCount; }
  /// The next line is the one that a source map points to.
  void mark() { marked = lineCount + 1; }
  int markedLine() const { return marked; }

private:
  std::string out;
  int lineCount = 0, marked = 0;
  int depth = 0;
};

/// Words of a text that was printed, beside the identifiers chosen for it.
using Words = llvm::StringSet<>;

/// Identifiers that are unique within a scope. None is a keyword, a macro of a header that emitted
/// code includes or a type of an element; nothing else is reserved. Names of one kind have a
/// namespace of their own in emitted code, so what else a header declares does not meet them.
class NameTable {
public:
  NameTable() = default;
  /// For identifiers that stand among words of the printer's own (names in a function's body): they
  /// are none of `words` and marked with kChosenName.
  explicit NameTable(const Words &words) : words(&words) {}
  /// An identifier like `raw`: every other character becomes an underscore.
  std::string unique(llvm::StringRef raw);
  /// For what has a name of its own: `mean`, or `mean_value` where that is a buffer's.
  std::string value(llvm::StringRef word, llvm::StringRef suffix = "_value") {
    const bool taken = used.contains(word) || !isFree(word);
    return unique(taken ? (word + suffix).str() : word.str());
  }
  void reserve(llvm::StringRef name) { used.take(name); }

private:
  bool isFree(llvm::StringRef name) const;

  UniqueNames used;
  const Words *words = nullptr;
};

/// Columns of a text with marked names.
size_t columns(llvm::StringRef text);

/// The text without the marks of chosen names.
std::string resolved(llvm::StringRef text);

/// Adds to `words` what `text` says outside comments, literals and directives beside chosen names.
/// Whether one of these is among them: then it may hide what the text means.
bool addWords(llvm::StringRef text, Words &words);

/// `raw` as an identifier, not yet unique nor checked against keywords.
std::string sanitize(llvm::StringRef raw);
/// `raw` inside a `//` comment.
std::string commentText(llvm::StringRef raw);
/// `raw` as a C++ string literal with its quotes.
std::string stringLiteral(llvm::StringRef raw);
/// The shortest literal of the type, float or double, that reads back as `value`.
std::string floatLiteral(const llvm::APFloat &value);
std::string integerLiteral(int64_t value);

} // namespace trainc
