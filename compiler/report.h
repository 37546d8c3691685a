// SPDX-License-Identifier: Apache-2.0
//
// Collects the user errors of a phase, so that all of them are printed at once.
#pragma once

#include "compiler/exit_codes.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace trainc {

class Report {
public:
  /// Adds `<subject>: <message>` and, where given, an indented `try: <advice>`; fails always.
  llvm::LogicalResult error(ExitCode code, const llvm::Twine &subject, const llvm::Twine &message,
                            const llvm::Twine &advice = "");

  bool empty() const { return problems.empty(); }
  size_t size() const { return problems.size(); }
  /// The first problem's; ok where there is none.
  ExitCode exitCode() const;
  void print(llvm::raw_ostream &stream) const;
  std::string text() const;

private:
  struct Problem {
    ExitCode code;
    std::string message;
    std::string advice;
  };
  std::vector<Problem> problems;
};

} // namespace trainc
