// SPDX-License-Identifier: Apache-2.0
//
// Lines of the emitted source: of steps, of the kernels that they call and of tensors' places. A
// target's files differ in their endings alone.
#pragma once

#include "tools/inspect/program_names.h"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trainc::inspect {

/// Of a file, from 1.
struct SourceLines {
  int first = 0, last = 0;
};

class EmittedSource {
public:
  /// Throws `failure` (exit_data) where there is no source.
  explicit EmittedSource(const std::string &folder);

  /// Each `FILE:LINE`, empty where it has none.
  std::string lineOfStep(const std::string &entry, int number) const;
  std::string lineOfKernel(const std::string &entry, int number) const;
  std::string lineOfTensor(const NamedTensor &tensor) const;
  /// A step's call, and its kernel whole with the comment in front; nothing where it has none.
  std::optional<SourceLines> linesOfStep(const std::string &entry, int number) const;
  std::optional<SourceLines> linesOfKernel(const std::string &entry, int number) const;
  /// Empty: a function of the runtime.
  std::string kernelOf(const std::string &entry, int number) const;
  const std::string &fileOfSteps() const { return stepFile; }
  const std::string &fileOfKernels() const { return kernelFile; }
  /// Of the tensor's entry function, those that read or write it.
  std::vector<int> stepsWith(const NamedTensor &tensor) const;

private:
  struct Step {
    SourceLines lines;
    std::string kernel; // empty: a function of the runtime
  };
  struct Kernel {
    int line; // its name's
    SourceLines lines;
  };
  struct Place {
    int line;
    std::string identifier;
  };
  void readSteps(const std::string &text);
  void addToStep(const std::string &entry, int number, llvm::StringRef line);
  void readKernels(const std::string &text);
  void readPlaces(const std::string &text);
  const Step *stepOf(const std::string &entry, int number) const;
  const Kernel *kernelAt(const std::string &entry, int number) const;
  const Place *placeOf(const NamedTensor &tensor) const;

  std::string stepFile, kernelFile, memoryFile;
  std::map<std::pair<std::string, int>, Step> steps; // by entry function and number
  std::map<std::string, Kernel> kernels;
  std::map<std::string, Place> places; // by what memory.h says of them
  std::map<std::pair<std::string, std::string>, std::vector<int>> uses; // by entry and identifier
};

} // namespace trainc::inspect
