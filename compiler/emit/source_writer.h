// SPDX-License-Identifier: Apache-2.0
//
// Text of emitted sources: indentation, identifiers, comments, literals. Every
// byte that comes from a model passes through one of these functions, so that no
// name can end a comment, a literal or a line.
#pragma once

#include "dialects/names/unique_names.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace trainc {

/// A blank at which a comment is not broken.
constexpr char kNoBreak = '\x01';

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
  const std::string &text() const { return out; }

private:
  std::string out;
  int depth = 0;
};

/// Identifiers that are unique within a scope.
class NameTable {
public:
  NameTable();
  /// An identifier like `raw`: every other character becomes an underscore.
  std::string unique(llvm::StringRef raw);
  /// For what has a name of its own: `mean`, or `mean_value` where that is a buffer's.
  std::string value(llvm::StringRef word) {
    return unique(contains(word) ? (word + "_value").str() : word.str());
  }
  void reserve(llvm::StringRef name) { used.take(name); }
  bool contains(llvm::StringRef name) const { return used.contains(name); }

private:
  UniqueNames used;
};

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
