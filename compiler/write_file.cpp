// SPDX-License-Identifier: Apache-2.0
#include "compiler/write_file.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace trainc {

static std::error_code finish(raw_fd_ostream &stream) {
  stream.close();
  std::error_code error = stream.error();
  stream.clear_error();
  return error;
}

std::error_code writeFile(StringRef path, llvm::function_ref<void(raw_ostream &)> write) {
  std::error_code error;
  raw_fd_ostream stream(path, error);
  if (error)
    return error;
  write(stream);
  return finish(stream);
}

std::error_code writeFile(StringRef path, StringRef text) {
  return writeFile(path, [&](raw_ostream &stream) { stream << text; });
}

std::error_code writeWholeFile(StringRef path, StringRef text) {
  int file = 0;
  SmallString<128> partial;
  if (std::error_code error =
          sys::fs::createUniqueFile(path + ".%%%%%%%%", file, partial, sys::fs::OF_None,
                                    sys::fs::all_read | sys::fs::all_write))
    return error;
  raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream << text;
  std::error_code error = finish(stream);
  if (!error)
    error = sys::fs::rename(partial, path);
  if (error)
    sys::fs::remove(partial);
  return error;
}

} // namespace trainc
