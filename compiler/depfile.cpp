// SPDX-License-Identifier: Apache-2.0
//
// A rule of Make without commands, one file a line.
#include "compiler/depfile.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace trainc {

/// As GCC writes names: Make and Ninja agree on these.
static std::string escaped(StringRef name) {
  std::string text;
  for (char c : name) {
    if (c == ' ' || c == '#')
      text += '\\';
    text += c == '$' ? std::string("$$") : std::string(1, c);
  }
  return text;
}

LogicalResult writeDepfile(StringRef path, StringRef target, ArrayRef<std::string> files,
                           Report &report) {
  std::error_code error;
  raw_fd_ostream stream(path, error);
  if (!error) {
    stream << escaped(target) << ":";
    for (const std::string &file : files)
      stream << " \\\n  " << escaped(file);
    stream << "\n";
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return report.error(ExitCode::outputNotWritten, path, error.message());
  return success();
}

} // namespace trainc
