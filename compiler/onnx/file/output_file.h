// SPDX-License-Identifier: Apache-2.0
//
// Writes large files straight from memory maps.
#pragma once

#include "compiler/report.h"
#include "llvm/ADT/ArrayRef.h"

namespace trainc::reader {

class OutputFile {
public:
  OutputFile(llvm::StringRef path, Report &report);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void write(llvm::ArrayRef<char> bytes);
  /// In the place of bytes that were written before.
  void rewrite(size_t offset, llvm::ArrayRef<char> bytes);
  /// Closes; false, with a report, where anything failed. The unfinished file is then removed.
  bool finish();

private:
  void fail(const char *what);
  std::string path;
  Report &report;
  int descriptor;
  bool good = true;
};

} // namespace trainc::reader
