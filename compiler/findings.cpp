// SPDX-License-Identifier: Apache-2.0
#include "compiler/findings.h"
#include "llvm/Support/ErrorHandling.h"

namespace trainc {

llvm::ArrayRef<FindingEntry> findingEntries() {
  static constexpr FindingEntry kEntries[] = {
#define FINDING(member, name, severity, meaning) {Finding::member, name, severity, meaning},
#include "compiler/findings.def"
#undef FINDING
  };
  return kEntries;
}

Finding findingOf(llvm::StringRef name) {
  for (const FindingEntry &entry : findingEntries())
    if (entry.name == name)
      return entry.finding;
  llvm_unreachable("not a name of findings.def");
}

} // namespace trainc
