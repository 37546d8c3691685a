// SPDX-License-Identifier: Apache-2.0
//
// A rule of Make without commands, one file a line.
#include "compiler/depfile.h"
#include "compiler/write_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <optional>

using namespace llvm;

namespace trainc {

namespace {

constexpr StringRef kPlain = "+,/_.~(){}%@[]!-", kEscaped = " #:";

bool isPlain(char c) {
  return isAlnum(c) || kPlain.contains(c) || static_cast<unsigned char>(c) >= 0x80;
}

/// A name as Make, Ninja and CMake read it alike; nothing where they do not: each takes other
/// characters for its own, and there is no sign that all three take off again.
std::optional<std::string> escaped(StringRef name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    bool isBackslash = c == '\\' && i + 1 < name.size() && isAlnum(name[i + 1]);
    if (!isPlain(c) && !kEscaped.contains(c) && c != '$' && !isBackslash)
      return std::nullopt;
    if (kEscaped.contains(c))
      text += '\\';
    text += c == '$' ? std::string("$$") : std::string(1, c);
  }
  return text;
}

} // namespace

LogicalResult writeDepfile(StringRef path, StringRef target, ArrayRef<std::string> files,
                           Report &report) {
  std::string rule;
  auto add = [&](StringRef name, StringRef before) -> LogicalResult {
    std::optional<std::string> text = escaped(name);
    if (!text)
      return report.error(ExitCode::outputNotWritten, name,
                          "--depfile cannot name it: it holds a character that Make and Ninja do "
                          "not read alike",
                          "a path of letters, digits, spaces and " + kPlain + kEscaped + "$");
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
               : "is no regular file, and the rule of --depfile would take its place",
        "another --depfile");
  // Whole or not at all: a build reads it whenever it starts.
  if (std::error_code error = writeWholeFile(path, rule + "\n"))
    return report.error(ExitCode::outputNotWritten, path,
                        "the rule of --depfile cannot be written: " + error.message(),
                        "another --depfile");
  return success();
}

} // namespace trainc
