// SPDX-License-Identifier: Apache-2.0
//
// Names of what a message is about, which stay the same while texts change: findings.def.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace trainc {

enum class Finding {
#define FINDING(member, name, severity, meaning) member,
#include "compiler/findings.def"
#undef FINDING
};

struct FindingEntry {
  Finding finding;
  const char *name;
  const char *severity;
  const char *meaning;
};

/// All of them, in the order of the enumeration.
llvm::ArrayRef<FindingEntry> findingEntries();
/// By its name, which must be one of them.
Finding findingOf(llvm::StringRef name);
inline const char *nameOf(Finding finding) {
  return findingEntries()[static_cast<size_t>(finding)].name;
}

} // namespace trainc
