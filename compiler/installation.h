// SPDX-License-Identifier: Apache-2.0
//
// Where this trainc finds the runtime: its sources, its archives and what links with them.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <string>
#include <system_error>
#include <vector>

namespace trainc {

/// What an emitted folder builds, and so what of the runtime it has.
enum class EmittedProgram { trainer, trainerAndLibrary, minimalLibrary };

struct Installation {
  std::string version;
  std::string program;                    // the running one
  std::string includeFolder;              // holds runtime/
  std::string libraryFolder;              // holds the archives
  std::vector<std::string> linkArguments; // what every trainer needs after them

  /// The archives of a target, `cpu` or `cuda`: the runtime's core and what implements its seam.
  std::string targetArchive(llvm::StringRef target) const;
  std::vector<std::string> archives(llvm::StringRef target) const;
  /// The files that a trainer for `target` is made from besides its model: this program, the
  /// archives, the runtime's headers; of an installation also the file that is named after all of
  /// them.
  std::vector<std::string> files(llvm::StringRef target) const;
  /// Copies what the program for `target` needs of the runtime's sources into `folder`/runtime: an
  /// emitted folder builds on a machine without trainc.
  std::error_code copyRuntime(llvm::StringRef target, EmittedProgram program,
                              llvm::StringRef folder) const;
};

/// The installed layout beside the running program (../share/trainc, ../lib), else the build
/// tree's.
Installation findInstallation();

/// The instruction-set level of this machine as a -march name: x86-64 to x86-64-v4. Levels
/// rather than processor names, since virtual machines hide features that a name promises.
std::string nativeMarch();

} // namespace trainc
