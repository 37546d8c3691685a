// SPDX-License-Identifier: Apache-2.0
//
// What tools print to llvm::outs(), which ends the process with words and an exit code of its own
// where a full disk is met.
#pragma once

#include "compiler/exit_codes.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdlib>
#include <string>
#include <system_error>
#include <unistd.h>

namespace trainc {

/// Writes out what was printed: why it cannot be written.
inline std::error_code finishStandardOutput() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  return error;
}

/// At the end of the process, that by --help included: where something was printed that cannot be
/// written, says so and ends with exit code 5. A limit on the size of files is an error of writing
/// too: its signal is ignored from here on. To be called before options are read, and after
/// llvm::InitLLVM, which hears that signal.
inline void watchStandardOutput(const char *program) {
  static const char *name = program;
  std::signal(SIGXFSZ, SIG_IGN);
  llvm::outs(), llvm::errs(); // made before, so that they end after
  std::atexit([] {
    std::error_code error = finishStandardOutput();
    if (error && error != std::errc::broken_pipe) // a reader that has gone, such as `head`
      llvm::errs() << name << ": its standard output cannot be written: " << error.message()
                   << "\n  try: another place for it\n";
    llvm::errs().clear_error(); // there is nobody to tell
    if (error)
      _exit(static_cast<int>(ExitCode::outputNotWritten));
  });
}

} // namespace trainc
