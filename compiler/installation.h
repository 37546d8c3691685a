// SPDX-License-Identifier: Apache-2.0
//
// Where this trainc finds the runtime: its sources, its archive and what links with it.
#pragma once

#include <string>
#include <vector>

namespace trainc {

struct Installation {
  std::string version;
  std::string includeFolder;              // holds runtime/
  std::string runtimeArchive;             // libtrainc_runtime.a
  std::vector<std::string> linkArguments; // archive first, then the libraries
};

/// The installed layout beside the running program (../share/trainc, ../lib), else the build
/// tree's.
Installation findInstallation();

/// The instruction-set level of this machine as a -march name: x86-64 to x86-64-v4. Levels
/// rather than processor names, since virtual machines hide features that a name promises.
std::string nativeMarch();

} // namespace trainc
