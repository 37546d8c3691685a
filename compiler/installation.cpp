// SPDX-License-Identifier: Apache-2.0
//
// Finds the runtime beside the program or in the build tree.
#include "compiler/installation.h"
#include "compiler/installation_paths.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

using namespace llvm;

namespace trainc {

namespace fs = std::filesystem;

Installation findInstallation() {
  Installation found;
  found.version = TRAINC_VERSION;
  static int anchor;
  found.program = sys::fs::getMainExecutable(nullptr, &anchor);
  const fs::path prefix = fs::path(found.program).parent_path().parent_path(); // of bin
  found.includeFolder = prefix / "share" / "trainc";
  found.libraryFolder = prefix / "lib";
  if (sys::fs::equivalent(found.libraryFolder, TRAINC_BUILD_LIBRARY_FOLDER)) {
    found.includeFolder = TRAINC_BUILD_SOURCE_FOLDER;
    found.libraryFolder = TRAINC_BUILD_LIBRARY_FOLDER;
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

/// Files of a folder of the runtime and of those in it, without another target's and without what
/// serves libraries alone, by their names in `root`.
static std::vector<std::string> filesIn(const fs::path &root, StringRef folder, StringRef target,
                                        EmittedProgram program, std::error_code &error) {
  std::vector<std::string> files;
  fs::recursive_directory_iterator entry(root / folder.str(), error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name == "minimal" || (name == "library" && program == EmittedProgram::trainer) ||
        isOfOtherTarget(*entry, target))
      entry.disable_recursion_pending();
    else if (!entry->is_directory() && !name.ends_with(".txt") && !name.ends_with(".cmake"))
      files.push_back(entry->path().lexically_relative(root));
  }
  return files;
}

static std::vector<std::string> linesOf(const fs::path &file, std::error_code &error) {
  std::ifstream stream(file);
  if (!stream && !error)
    error = std::make_error_code(std::errc::no_such_file_or_directory);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

/// What its list of sources names and what these include; besides what emitted code and users'
/// operators do.
static std::vector<std::string> filesOfMinimalLibrary(const fs::path &root,
                                                      std::error_code &error) {
  const std::string list = "runtime/minimal/sources.txt";
  std::vector<std::string> files =
      filesIn(root, "runtime/kernels", "cpu", EmittedProgram::trainer, error);
  llvm::append_range(files, std::array{list, std::string("runtime/minimal/single_thread/omp.h"),
                                       std::string("runtime/entry_memory.h")});
  for (const std::string &source : linesOf(root / list, error))
    files.push_back("runtime/" + source);
  std::set<std::string> known(files.begin(), files.end());
  for (size_t i = 0; i < files.size(); ++i)
    for (const std::string &line : linesOf(root / files[i], error))
      if (StringRef name = line; name.consume_front("#include \"") && name.starts_with("runtime/"))
        if (std::string included = name.take_until([](char c) { return c == '"'; }).str();
            known.insert(included).second)
          files.push_back(included);
  return files;
}

// Not std::filesystem::copy, which calls a full disk an input/output error.
std::error_code Installation::copyRuntime(StringRef target, EmittedProgram program,
                                          StringRef folder) const {
  const fs::path from = includeFolder, to = folder.str();
  std::error_code error;
  fs::remove_all(to / "runtime", error);
  const std::vector<std::string> files = error ? std::vector<std::string>()
                                         : program == EmittedProgram::minimalLibrary
                                             ? filesOfMinimalLibrary(from, error)
                                             : filesIn(from, "runtime", target, program, error);
  for (const std::string &file : files) {
    if (!error)
      fs::create_directories((to / file).parent_path(), error);
    if (!error)
      error = sys::fs::copy_file((from / file).string(), (to / file).string());
  }
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
