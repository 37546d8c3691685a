// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/text_file.h"

#include "runtime/failure.h"

#include "llvm/Support/MemoryBuffer.h"

namespace trainc::inspect {

std::string readText(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    throw failure(exit_data, path + ": " + buffer.getError().message() +
                                 "\n  try: the output folder of trainc");
  return (*buffer)->getBuffer().str();
}

} // namespace trainc::inspect
