// SPDX-License-Identifier: Apache-2.0
//
// Where this machine's CUDA compiler is, and the headers and libraries beside it.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace trainc {

struct CudaToolkit {
  std::string nvcc;
  std::vector<std::string> includes;      // folders of cuda_runtime.h, cublasLt.h, nccl.h
  std::vector<std::string> linkArguments; // libraries with their folders
  std::vector<std::string> runPath;       // for the linker: where a program finds them
};

/// The toolkit that `nvcc` (a program on PATH, or a path) belongs to. Nothing where
/// something is missing; `missing` then says all of it in one sentence.
std::optional<CudaToolkit> findCudaToolkit(llvm::StringRef nvcc, std::string &missing);

/// The parts of a list like `80,90,100`, or nothing where one is not a compute capability.
std::optional<std::vector<std::string>> parseCudaArchitectures(llvm::StringRef list);

} // namespace trainc
