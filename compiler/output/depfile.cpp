// SPDX-License-Identifier: Apache-2.0
//
// A rule of Make without commands, one file a line.
#include "compiler/output/depfile.h"
#include "compiler/output/write_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <optional>

using namespace llvm;

namespace trainc {

namespace {

constexpr StringRef kPlain = "+,/_.~(){}%@[]!-";

/// Whether Make takes the name for several, for one of a library or for a home folder.
bool hasOtherMeaning(StringRef name, bool isTarget) {
  size_t bracket = name.find('['), parenthesis = name.find('(');
  bool isPattern = bracket != StringRef::npos && name.find(']', bracket) != StringRef::npos;
  bool isMember = parenthesis != StringRef::npos && parenthesis > 0 && name.ends_with(")");
  return isPattern || isMember || name.starts_with("~") || (isTarget && name.contains('%'));
}

bool isPlain(char c) {
  return isAlnum(c) || kPlain.contains(c) || static_cast<unsigned char>(c) >= 0x80;
}

/// A name as Make, Ninja and CMake read it alike; nothing where they do not: each takes other
/// characters for its own, and there is no sign that all three take off again.
std::optional<std::string> escaped(StringRef name, bool isTarget) {
  if (hasOtherMeaning(name, isTarget))
    return std::nullopt;
  std::string text;
  for (char c : name) {
    if (!isPlain(c) && c != ' ')
      return std::nullopt;
    if (c == ' ')
      text += '\\';
    text += c;
  }
  return text;
}

} // namespace

LogicalResult writeDepfile(StringRef path, StringRef target, ArrayRef<std::string> files,
                           Report &report) {
  std::string rule;
  auto add = [&](StringRef name, StringRef before) -> LogicalResult {
    std::optional<std::string> text = escaped(name, /*isTarget=*/rule.empty());
    if (!text)
      return report.error(ExitCode::outputNotWritten, name,
                          "--depfile cannot name it: it holds a character that Make and Ninja do "
                          "not read alike",
                          "a path of letters, digits, spaces and +,/_.{}@!-");
    rule += before.str() + *text;
    return success();
  };
  if (failed(add(target, "")))
    return failure();
  rule += ":";
  for (const std::string &file : files)
    if (failed(add(file, " \\\n  ")))
      return failure();
  namespace fs = llvm::sys::fs;
  bool isRead =
      llvm::any_of(files, [&](const std::string &file) { return fs::equivalent(path, file); });
  if (isRead || (fs::exists(path) && !fs::is_regular_file(path)))
    return report.error(
        ExitCode::outputNotWritten, path,
        isRead ? "is read by this command, and the rule of --depfile would take its place"
               : "is not a regular file, and the rule of --depfile would take its place",
        "another --depfile");
  // Whole or not at all: a build reads it whenever it starts.
  if (std::error_code error = writeWholeFile(path, rule + "\n"))
    return report.error(ExitCode::outputNotWritten, path,
                        "the rule of --depfile cannot be written: " + error.message(),
                        "another --depfile");
  return success();
}

} // namespace trainc
