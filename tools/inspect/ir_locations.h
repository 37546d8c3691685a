// SPDX-License-Identifier: Apache-2.0
//
// What a line of textual IR says of where it comes from: `loc(#loc7)`, whose alias stands at the
// end of the file. dialects/names/node_name.h says what locations hold.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace trainc::inspect {

/// A name in a location, with what stands around it.
struct LocatedName {
  std::string name;                // of plans
  std::vector<std::string> around; // from the inside out: a role, `gradient`
  std::vector<std::string> labels; // of nodes of the file
  /// `gradient of h.0.ln_1`
  std::string title() const;
};

class IrLocations {
public:
  /// Reads the aliases of a file, whose text has to outlive them.
  explicit IrLocations(llvm::StringRef text);

  /// The names in what stands after `loc(`.
  std::vector<LocatedName> namesIn(llvm::StringRef text) const;

private:
  friend class LocationReader;
  llvm::StringMap<llvm::StringRef> aliases; // `#loc7`: what it stands for
};

} // namespace trainc::inspect
