// SPDX-License-Identifier: Apache-2.0
//
// The model as a C library: header, functions under the model's name, what a build system reads.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace trainc {

/// What all names of a model's library begin with, the files' too: `model_my_net` of my-net.onnx.
/// With the word before it no name is one of C, of its library or of another library.
std::string libraryName(llvm::StringRef modelName);

/// The text of a file of runtime/library (interface.h, forwards.inc) for a model of this name.
std::string libraryText(llvm::StringRef text, llvm::StringRef name);

/// For the emitted CMakeLists.txt: the shared library, as the trainer is built.
std::string libraryBuildText(llvm::StringRef name);

/// The runtime's files that a minimal library is made of, as the emitted folder has them, by what
/// is compiled at once: most of the time goes into headers. Names in unnamed namespaces differ
/// within a unit. Nothing where runtime/minimal/sources.txt cannot be read.
std::vector<std::vector<std::string>> minimalLibraryUnits(llvm::StringRef sourceFolder);
/// How they and the emitted files are compiled and linked, besides hostFlags().
llvm::ArrayRef<llvm::StringRef> minimalLibraryFlags();
llvm::ArrayRef<llvm::StringRef> minimalLibraryLinkFlags();
/// CMakeLists.txt of the emitted folder of a minimal library.
std::string minimalLibraryBuildText(llvm::StringRef name, llvm::StringRef march);

/// For pkg-config, in the folder of the library. `libraries`: what a static library needs besides.
std::string pkgConfigText(llvm::StringRef name, llvm::StringRef modelName,
                          llvm::StringRef libraries);

} // namespace trainc
