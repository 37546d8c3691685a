// SPDX-License-Identifier: Apache-2.0
//
// What the optimizer of PyTorch's default exporter lost of a module's parameters and nothing in the
// file brings back.
#pragma once

#include "compiler/report.h"
#include <set>
#include <string>
#include <vector>

namespace trainc::reader {

struct LostParameters {
  std::vector<std::string> foldedNorms; // of batch norms that are folded into other layers
  std::vector<std::string> changed;     // that have other values than in the module
  std::set<std::string> undecided;      // that several uses may have meant
  std::set<std::string> unnamed;        // that no call names, though calls are gone
  std::set<std::string> shared;         // that calls name, and one that is gone may have, too
  std::set<std::string> unclear;        // that no call names: in all likelihood unused

  /// An error for each kind of loss, which names each parameter once.
  void report(const std::string &path, Report &report);
};

} // namespace trainc::reader
