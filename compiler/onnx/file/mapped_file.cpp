// SPDX-License-Identifier: Apache-2.0
//
// Mapping through POSIX calls: LLVM's MemoryBuffer copies small files and cannot refuse devices.
#include "compiler/onnx/file/mapped_file.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trainc::reader {

std::unique_ptr<MappedFile> MappedFile::open(const std::string &path, std::string &why) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    why = std::strerror(errno);
    return nullptr;
  }
  struct stat status;
  const char *data = nullptr;
  size_t size = 0;
  if (fstat(descriptor, &status) != 0) {
    why = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    why = "not a regular file";
  } else {
    size = static_cast<size_t>(status.st_size);
    void *mapped =
        size ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : const_cast<char *>("");
    if (mapped == MAP_FAILED)
      why = std::strerror(errno);
    else
      data = static_cast<const char *>(mapped);
  }
  ::close(descriptor);
  return data ? std::unique_ptr<MappedFile>(new MappedFile(data, size)) : nullptr;
}

void MappedFile::releasePages() const {
  if (size)
    madvise(const_cast<char *>(data), size, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (size)
    munmap(const_cast<char *>(data), size);
}

} // namespace trainc::reader
