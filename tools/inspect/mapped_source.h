// SPDX-License-Identifier: Apache-2.0
//
// Lines of the emitted source of steps, of the kernels that they call and of tensors' places, as
// plan/source_map.json has them.
#pragma once

#include "tools/inspect/name_search.h"

namespace trainc::inspect {

class MappedSource {
public:
  /// Throws `failure` (exit_data) where the folder has no map that fits the plan.
  MappedSource(const std::string &folder, const plan &program);

  /// Each `FILE:LINE`, empty where the source has none.
  std::string lineOfStep(const StepOfEntry &step) const;
  std::string lineOfKernel(const StepOfEntry &step) const;
  std::string lineOfTensor(const TensorOfEntry &tensor) const;
  /// A step's call; null: the source has no such function.
  const source_lines *linesOfStep(const StepOfEntry &step) const;
  /// Null: a function of the runtime.
  const mapped_kernel *kernelOf(const StepOfEntry &step) const;
  std::string fileOfSteps() const { return folder + "/" + map.step_file; }
  std::string fileOfKernels() const { return folder + "/" + map.kernel_file; }

private:
  const mapped_step *find(const StepOfEntry &step) const;

  const std::string folder;
  const source_map map;
};

} // namespace trainc::inspect
