// SPDX-License-Identifier: Apache-2.0
#include "compiler/output/write_file.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <fcntl.h>
#include <random>
#include <unistd.h>

using namespace llvm;

namespace trainc {

static std::error_code finish(raw_fd_ostream &stream) {
  stream.close();
  std::error_code error = stream.error();
  stream.clear_error();
  return error;
}

/// A pipe that nobody reads would be waited for.
static std::error_code refuseUnreadPipe(StringRef path) {
  const int file = ::open(path.str().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (file >= 0)
    ::close(file);
  return file < 0 && errno == ENXIO ? std::error_code(ENXIO, std::generic_category())
                                    : std::error_code();
}

static std::error_code writeInPlace(StringRef path, llvm::function_ref<void(raw_ostream &)> write) {
  std::error_code error = refuseUnreadPipe(path);
  if (error)
    return error;
  raw_fd_ostream stream(path, error);
  if (error)
    return error;
  write(stream);
  return finish(stream);
}

std::error_code writeFile(StringRef path, StringRef text) {
  return writeInPlace(path, [&](raw_ostream &stream) { stream << text; });
}

/// A new file beside `path`. Not createUniqueFile, which would take a % of the folder's name for a
/// place of a digit.
static std::error_code createBeside(StringRef path, int &file, std::string &name) {
  constexpr unsigned kDigits = 8;
  std::random_device device;
  std::error_code error;
  do {
    name = path.str() + "." + utohexstr(device(), /*LowerCase=*/true, kDigits);
    error = sys::fs::openFileForWrite(name, file, sys::fs::CD_CreateNew);
  } while (error == std::errc::file_exists);
  return error;
}

std::error_code writeWholeFile(StringRef path, llvm::function_ref<void(raw_ostream &)> write) {
  if (sys::fs::exists(path) && !sys::fs::is_regular_file(path))
    return writeInPlace(path, write);
  int file = 0;
  std::string partial;
  if (std::error_code error = createBeside(path, file, partial))
    return error;
  raw_fd_ostream stream(file, /*shouldClose=*/true);
  write(stream);
  std::error_code error = finish(stream);
  if (!error)
    error = sys::fs::rename(partial, path);
  if (error)
    sys::fs::remove(partial);
  return error;
}

std::error_code writeWholeFile(StringRef path, StringRef text) {
  return writeWholeFile(path, [&](raw_ostream &stream) { stream << text; });
}

std::string temporaryPath(StringRef name) {
  llvm::SmallString<128> folder, file;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
  llvm::sys::fs::createUniquePath("trainc-%%%%%%%%%%%%-" + name, file, /*MakeAbsolute=*/false);
  return (folder + "/" + file).str(); // apart: a % in the folder's name does not stand for a digit
}

} // namespace trainc
