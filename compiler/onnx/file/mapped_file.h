// SPDX-License-Identifier: Apache-2.0
//
// A file's bytes, mapped read-only.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>

namespace trainc::reader {

class MappedFile {
public:
  /// Null on failure; `why` then says why in words. Only regular files are opened.
  static std::unique_ptr<MappedFile> open(const std::string &path, std::string &why);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  llvm::ArrayRef<char> bytes() const { return {data, size}; }
  /// Gives back the memory of pages that were read; whoever reads them again has them from the
  /// file.
  void releasePages() const;

private:
  MappedFile(const char *data, size_t size) : data(data), size(size) {}
  const char *data;
  size_t size;
};

} // namespace trainc::reader
