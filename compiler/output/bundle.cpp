// SPDX-License-Identifier: Apache-2.0
//
// The loader itself says what it would load: nobody else knows its search path.
#include "compiler/output/bundle.h"
#include "compiler/output/write_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

using namespace llvm;

namespace trainc {

namespace {

/// In the folder of the libraries: which there are. A build sees by it that the folder is there.
constexpr const char *kBundleList = "libraries.txt";

constexpr const char *kLoader = "/lib64/ld-linux-x86-64.so.2";

/// Parts of the C library: they must be of one build with the loader, which is the system's.
bool isOfSystem(StringRef name) {
  constexpr const char *parts[] = {"ld-linux", "linux-vdso", "libc.",  "libm.",
                                   "libmvec.", "libdl.",     "librt.", "libpthread.",
                                   "libutil.", "libresolv."};
  return any_of(parts, [&](const char *part) { return name.starts_with(part); });
}

/// What the loader prints with these arguments; nothing where it fails. Meanwhile in memory: on a
/// full disk the loader would cut it off and end well.
std::optional<std::string> askLoader(ArrayRef<StringRef> arguments,
                                     ArrayRef<StringRef> environment) {
  int file = memfd_create("loader", 0);
  if (file < 0)
    return std::nullopt;
  std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file), text;
  std::optional<StringRef> redirects[] = {std::nullopt, path, path};
  int status = sys::ExecuteAndWait(kLoader, arguments, environment, redirects);
  text.resize(std::max<off_t>(lseek(file, 0, SEEK_END), 0));
  bool isRead = pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  close(file);
  return status == 0 && isRead ? std::optional(text) : std::nullopt;
}

/// This process's environment without what would have the loader load more than the program asks
/// for, and not list it as the program's.
std::vector<StringRef> withoutPreloads() {
  std::vector<StringRef> result;
  for (char **entry = environ; *entry != nullptr; ++entry)
    if (StringRef variable = *entry;
        !variable.starts_with("LD_PRELOAD=") && !variable.starts_with("LD_AUDIT="))
      result.push_back(variable);
  return result;
}

/// Names with the files that the loader takes for them.
std::map<std::string, std::string> librariesIn(StringRef list) {
  std::map<std::string, std::string> libraries;
  SmallVector<StringRef> lines;
  list.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) { // libgomp.so.1 => /lib/x86_64-linux-gnu/libgomp.so.1 (0x...)
    auto [name, rest] = line.trim().split(" => ");
    std::string path = rest.rsplit(" (").first.str();
    if (!isOfSystem(sys::path::filename(name)) && !path.empty())
      libraries[name.str()] = path;
  }
  return libraries;
}

/// Those of the names that LD_LIBRARY_PATH has a file for.
std::vector<std::string> fromLibraryPath(const std::string &folder) {
  std::vector<std::string> found;
  SmallVector<StringRef> places;
  if (const char *path = std::getenv("LD_LIBRARY_PATH"))
    StringRef(path).split(places, ':', -1, /*KeepEmpty=*/false);
  std::error_code error;
  for (const auto &library : std::filesystem::recursive_directory_iterator(folder, error))
    for (StringRef place : places)
      if (std::string file = place.str() + "/" + library.path().filename().string();
          library.is_regular_file() && sys::fs::exists(file)) {
        found.push_back(file);
        break;
      }
  return found;
}

} // namespace

std::vector<std::string> bundleLinkArguments(StringRef folderName) {
  // The older tag: it holds for the libraries of the libraries too.
  return {"-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/" + folderName.str()};
}

FailureOr<std::string> bundleLibraries(const std::string &program, const std::string &folder,
                                       Report &report) {
  std::optional<std::string> list = askLoader({kLoader, "--list", program}, withoutPreloads());
  if (!list || !StringRef(*list).contains("libc.so."))
    return report.error(ExitCode::hostCompilerFailed, program,
                        std::string("cannot list its libraries with ") + kLoader + " --list",
                        "the command without --bundle");
  const std::map<std::string, std::string> libraries = librariesIn(*list);
  BLAKE3 hash;
  for (auto &[name, path] : libraries) {
    auto content = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!content)
      return report.error(ExitCode::outputNotWritten, path, content.getError().message(),
                          "the command without --bundle");
    hash.update(name);
    hash.update((*content)->getBuffer());
  }
  std::string digest = toHex(hash.final<8>(), /*LowerCase=*/true);
  const std::filesystem::path target = std::filesystem::path(folder) / digest;
  std::error_code error;
  std::filesystem::create_directory(target, error);
  for (auto &[name, path] : libraries) {
    if (!error)
      std::filesystem::copy_file(path, target / name,
                                 std::filesystem::copy_options::overwrite_existing, error);
    if (error)
      return report.error(ExitCode::outputNotWritten, (target / name).string(),
                          "cannot copy " + path + ": " + error.message());
  }
  std::string names;
  for (auto &[name, path] : libraries)
    names += digest + "/" + name + "\n";
  if (std::error_code error =
          writeWholeFile((std::filesystem::path(folder) / kBundleList).string(), names))
    return report.error(ExitCode::outputNotWritten, folder + "/" + kBundleList, error.message());
  return digest;
}

LogicalResult checkBundle(const std::string &program, const std::string &folder, Report &report) {
  // As `ldd -r`: binds every function, and runs nothing.
  std::optional<std::string> list =
      askLoader({kLoader, program},
                ArrayRef<StringRef>{"LD_TRACE_LOADED_OBJECTS=1", "LD_BIND_NOW=1", "LD_WARN=yes"});
  SmallVector<StringRef> lines;
  if (list)
    StringRef(*list).split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::vector<std::string> undefined;
  for (StringRef line : lines)
    if (line.consume_front("undefined symbol: "))
      undefined.push_back(line.split('\t').first.rtrim().str());
    else if (line.contains("not found"))
      undefined.push_back(line.trim().split(" => ").first.str());
  if (list && undefined.empty())
    return success();
  std::vector<std::string> suspects = fromLibraryPath(folder);
  return report.error(
      ExitCode::hostCompilerFailed, Subject::ofOption("--bundle"),
      (list ? "no library of the bundle has " + quotedList(undefined, 3) +
                  ", which the trainer needs"
            : "the trainer does not load with the libraries of its bundle") +
          (suspects.empty() ? "" : "; LD_LIBRARY_PATH gives " + quotedList(suspects, 3)),
      suspects.empty() ? "the command without --bundle" : "the command without LD_LIBRARY_PATH");
}

} // namespace trainc
