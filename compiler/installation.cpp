// SPDX-License-Identifier: Apache-2.0
//
// Finds the runtime beside the program or in the build tree.
#include "compiler/installation.h"
#include "compiler/installation_paths.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <filesystem>

using namespace llvm;

namespace trainc {

namespace fs = std::filesystem;

Installation findInstallation() {
  Installation found;
  found.version = TRAINC_VERSION;
  static int anchor;
  found.program = sys::fs::getMainExecutable(nullptr, &anchor);
  SmallString<256> prefix(found.program);
  sys::path::remove_filename(prefix);
  sys::path::remove_filename(prefix); // of bin
  SmallString<256> shared(prefix), archive(prefix);
  sys::path::append(shared, "share", "trainc");
  sys::path::append(archive, "lib");
  if (sys::fs::equivalent(archive, TRAINC_BUILD_LIBRARY_FOLDER)) {
    found.includeFolder = TRAINC_BUILD_SOURCE_FOLDER;
    found.libraryFolder = TRAINC_BUILD_LIBRARY_FOLDER;
  } else {
    found.includeFolder = shared.str().str();
    found.libraryFolder = archive.str().str();
  }
  found.linkArguments = {"-fopenmp", "-ldl"}; // MPI is loaded when a launcher starts a trainer
  if (StringRef flags = TRAINC_SANITIZER_FLAGS; !flags.empty())
    found.linkArguments.push_back(flags.str());
  return found;
}

std::string Installation::targetArchive(StringRef target) const {
  return libraryFolder + "/libtrainc_" + target.str() + ".a";
}

std::vector<std::string> Installation::archives(StringRef target) const {
  std::vector<std::string> arguments = {"-Wl,--start-group", libraryFolder + "/libtrainc_runtime.a",
                                        targetArchive(target), "-Wl,--end-group"};
  if (target == "cpu")
    arguments.push_back("-ldnnl");
  return arguments;
}

// The runtime has a folder for each target; all others are of every trainer.
static bool isOfOtherTarget(const fs::path &folder, StringRef target) {
  const std::string name = folder.filename();
  return (name == "cpu" || name == "cuda") && name != target;
}

std::vector<std::string> Installation::files(StringRef target) const {
  std::vector<std::string> files = {program, libraryFolder + "/libtrainc_runtime.a"};
  if (fs::exists(targetArchive(target)))
    files.push_back(targetArchive(target));
  std::error_code error;
  fs::recursive_directory_iterator entry(fs::path(includeFolder) / "runtime", error), end;
  for (; !error && entry != end; entry.increment(error))
    if (isOfOtherTarget(*entry, target))
      entry.disable_recursion_pending();
    else if (entry->path().extension() == ".h")
      files.push_back(entry->path());
  for (const fs::directory_entry &digest : // cmake/installed_digest.cmake
       fs::directory_iterator(fs::path(includeFolder) / "installed", error))
    files.push_back(digest.path());
  llvm::sort(files);
  return files;
}

// Not std::filesystem::copy, which calls a full disk an input/output error.
static std::error_code copyFolder(const fs::path &from, const fs::path &to, StringRef target) {
  std::error_code error;
  fs::create_directory(to, error);
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path copy = to / entry->path().filename();
    if (!entry->is_directory())
      error = llvm::sys::fs::copy_file(entry->path().string(), copy.string());
    else if (!isOfOtherTarget(*entry, target))
      error = copyFolder(entry->path(), copy, target);
    if (error)
      break;
  }
  return error;
}

std::error_code Installation::copyRuntime(StringRef target, StringRef folder) const {
  std::error_code error;
  const fs::path to = fs::path(folder.str()) / "runtime";
  fs::remove_all(to, error);
  if (!error)
    error = copyFolder(fs::path(includeFolder) / "runtime", to, target);
  std::error_code ignored;
  for (const char *name : {"CMakeLists.txt", "cuda.cmake"}) // parts of another build
    fs::remove(to / name, ignored);
  return error;
}

std::string nativeMarch() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3"))
    return "x86-64-v3";
  if (__builtin_cpu_supports("x86-64-v2"))
    return "x86-64-v2";
  return "x86-64";
}

} // namespace trainc
