// SPDX-License-Identifier: Apache-2.0
//
// The loader itself says what it would load: nobody else knows its search path.
#include "compiler/bundle.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <filesystem>

using namespace llvm;

namespace trainc {

namespace {

constexpr const char *kLoader = "/lib64/ld-linux-x86-64.so.2";

/// Parts of the C library: they must be of one build with the loader, which is the system's.
bool isOfSystem(StringRef name) {
  constexpr const char *parts[] = {"ld-linux", "linux-vdso", "libc.",  "libm.",
                                   "libmvec.", "libdl.",     "librt.", "libpthread.",
                                   "libutil.", "libresolv."};
  return any_of(parts, [&](const char *part) { return name.starts_with(part); });
}

/// The output of `loader --list program`; nothing where it fails.
std::unique_ptr<MemoryBuffer> listLibraries(const std::string &program) {
  SmallString<128> path;
  if (sys::fs::createTemporaryFile("trainc", "libraries", path))
    return nullptr;
  std::optional<StringRef> redirects[] = {std::nullopt, path.str(), std::nullopt};
  int status = sys::ExecuteAndWait(kLoader, {kLoader, "--list", program}, std::nullopt, redirects);
  auto text = MemoryBuffer::getFile(path, /*IsText=*/true, /*RequiresNullTerminator=*/true,
                                    /*IsVolatile=*/true);
  sys::fs::remove(path);
  return status == 0 && text ? std::move(*text) : nullptr;
}

} // namespace

std::vector<std::string> bundleLinkArguments(StringRef folderName) {
  // The older tag: it holds for the libraries of the libraries too.
  return {"-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/" + folderName.str()};
}

LogicalResult bundleLibraries(const std::string &program, const std::string &folder,
                              Report &report) {
  std::unique_ptr<MemoryBuffer> list = listLibraries(program);
  if (!list)
    return report.error(ExitCode::hostCompilerFailed, program,
                        std::string("cannot list its libraries with ") + kLoader + " --list",
                        "the command without --bundle");
  SmallVector<StringRef> lines;
  list->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) { // libgomp.so.1 => /lib/x86_64-linux-gnu/libgomp.so.1 (0x...)
    auto [name, rest] = line.trim().split(" => ");
    std::string path = rest.rsplit(" (").first.str();
    if (isOfSystem(sys::path::filename(name)) || path.empty())
      continue;
    std::error_code error;
    std::filesystem::copy_file(path, folder + "/" + name.str(),
                               std::filesystem::copy_options::overwrite_existing, error);
    if (error)
      return report.error(ExitCode::outputNotWritten, folder + "/" + name,
                          "cannot copy " + path + ": " + error.message());
  }
  return success();
}

} // namespace trainc
