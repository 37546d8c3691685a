// SPDX-License-Identifier: Apache-2.0
//
// Lines of the emitted source: of steps, of the kernels that they call and of tensors' places. A
// target's files differ in their endings alone.
#pragma once

#include "tools/inspect/program_names.h"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace trainc::inspect {

class EmittedSource {
public:
  /// Throws `failure` (exit_data) where there is no source.
  explicit EmittedSource(const std::string &folder);

  /// Each `FILE:LINE`, empty where it has none.
  std::string lineOfStep(const std::string &entry, int number) const;
  std::string lineOfKernel(const std::string &entry, int number) const;
  std::string lineOfTensor(const NamedTensor &tensor) const;
  /// Of the tensor's entry function, those that read or write it.
  std::vector<int> stepsWith(const NamedTensor &tensor) const;

private:
  struct Step {
    int line = 0;
    std::string kernel; // empty: a function of the runtime
  };
  struct Place {
    int line;
    std::string identifier;
  };
  void readSteps(const std::string &text);
  void addToStep(const std::string &entry, int number, llvm::StringRef line);
  void readKernels(const std::string &text);
  void readPlaces(const std::string &text);
  const Place *placeOf(const NamedTensor &tensor) const;

  std::string stepFile, kernelFile, memoryFile;
  std::map<std::pair<std::string, int>, Step> steps; // by entry function and number
  std::map<std::string, int> kernels;
  std::map<std::string, Place> places; // by what memory.h says of them
  std::map<std::pair<std::string, std::string>, std::vector<int>> uses; // by entry and identifier
};

} // namespace trainc::inspect
