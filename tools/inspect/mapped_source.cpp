// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/mapped_source.h"

#include "runtime/plan/read_plan.h"

namespace trainc::inspect {

MappedSource::MappedSource(const std::string &folder, const plan &program)
    : folder(folder), map(read_source_map(folder, program)) {}

const mapped_step *MappedSource::find(const StepOfEntry &step) const {
  const mapped_entry *entry = map.find(step.entry->name);
  return entry ? &entry->steps[size_t(step.number)] : nullptr;
}

const source_lines *MappedSource::linesOfStep(const StepOfEntry &step) const {
  const mapped_step *found = find(step);
  return found ? &found->lines : nullptr;
}

const mapped_kernel *MappedSource::kernelOf(const StepOfEntry &step) const {
  const mapped_step *found = find(step);
  return found && found->kernel >= 0 ? &map.kernels[size_t(found->kernel)] : nullptr;
}

std::string MappedSource::lineOfStep(const StepOfEntry &step) const {
  const source_lines *lines = linesOfStep(step);
  return lines ? fileOfSteps() + ":" + std::to_string(lines->first) : "";
}

std::string MappedSource::lineOfKernel(const StepOfEntry &step) const {
  const mapped_kernel *kernel = kernelOf(step);
  return kernel ? fileOfKernels() + ":" + std::to_string(kernel->line) : "";
}

std::string MappedSource::lineOfTensor(const TensorOfEntry &tensor) const {
  const mapped_entry *entry = map.find(tensor.entry->name);
  const int line = entry ? entry->tensors[size_t(tensor.number)] : 0;
  return line > 0 ? folder + "/" + map.memory_file + ":" + std::to_string(line) : "";
}

} // namespace trainc::inspect
