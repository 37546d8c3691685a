// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that remembers its first error.
#include "compiler/onnx/file/output_file.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace trainc::reader {

OutputFile::OutputFile(llvm::StringRef path, Report &report)
    : path(path.str()), report(report),
      descriptor(::open(this->path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor < 0)
    fail("cannot be created");
}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

void OutputFile::fail(const char *what) {
  if (good)
    (void)report.error(ExitCode::outputNotWritten, path,
                       llvm::Twine(what) + ": " + std::strerror(errno));
  good = false;
}

void OutputFile::write(llvm::ArrayRef<char> bytes) {
  constexpr size_t kAtOnce = size_t(1) << 30; // Linux writes at most 2 GiB per call
  while (good && !bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), std::min(bytes.size(), kAtOnce));
    if (written > 0)
      bytes = bytes.drop_front(written);
    else if (written == 0 || errno != EINTR)
      fail("cannot be written");
  }
}

void OutputFile::rewrite(size_t offset, llvm::ArrayRef<char> bytes) {
  while (good && !bytes.empty()) {
    ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written > 0) {
      bytes = bytes.drop_front(written);
      offset += static_cast<size_t>(written);
    } else if (written == 0 || errno != EINTR) {
      fail("cannot be written");
    }
  }
}

bool OutputFile::finish() {
  if (descriptor >= 0 && ::close(descriptor) != 0)
    fail("cannot be written");
  if (!good && descriptor >= 0)
    ::unlink(path.c_str());
  descriptor = -1;
  return good;
}

} // namespace trainc::reader
