// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trainc {

/// A tensor that has its values from a parameter, by another name: an initializer of the model's
/// file that export writes, or what the module's state holds.
struct ExportEntry {
  std::string name;
  std::string parameterName;
  bool transposed = false;
};

} // namespace trainc
