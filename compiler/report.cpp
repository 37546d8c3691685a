// SPDX-License-Identifier: Apache-2.0
//
// The one form of user errors. Equal messages are kept once: one cause is often met twice.
#include "compiler/report.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc {

LogicalResult Report::error(ExitCode code, const Twine &subject, const Twine &message,
                            const Twine &advice) {
  Problem problem{code, (subject + ": " + message).str(), advice.str()};
  if (none_of(problems, [&](const Problem &other) { return other.message == problem.message; }))
    problems.push_back(std::move(problem));
  return failure();
}

ExitCode Report::exitCode() const { return problems.empty() ? ExitCode::ok : problems[0].code; }

void Report::print(raw_ostream &stream) const {
  for (const Problem &problem : problems) {
    stream << problem.message << '\n';
    if (!problem.advice.empty())
      stream << "  try: " << problem.advice << '\n';
  }
}

std::string Report::text() const {
  std::string result;
  raw_string_ostream stream(result);
  print(stream);
  return result;
}

} // namespace trainc
