// SPDX-License-Identifier: Apache-2.0
//
// What ptxas says about each kernel: registers, spills, shared memory.
#include "compiler/emit/emit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Demangle/Demangle.h"
#include <map>

using namespace llvm;

namespace {

/// The number before `unit` in a line like `Used 40 registers, 64 bytes smem`.
int64_t numberBefore(StringRef line, StringRef unit) {
  StringRef before = line.take_front(line.find(unit)).rtrim();
  if (!line.contains(unit))
    return 0;
  int64_t number = 0;
  before.substr(before.find_last_not_of("0123456789") + 1).getAsInteger(10, number);
  return number;
}

/// `h_ln_1_rows` of a mangled name, without namespaces, result and parameters.
std::string kernelName(StringRef mangled) {
  std::string text = demangle(mangled);
  StringRef name = StringRef(text).split('(').first;
  return name.substr(name.rfind(':') + 1).str();
}

StringRef quoted(StringRef line, unsigned number) {
  for (unsigned i = 0; i < 2 * number + 1; ++i)
    line = line.split('\'').second;
  return line.split('\'').first;
}

} // namespace

trainc::register_table trainc::registerTable(StringRef log) {
  std::map<std::pair<std::string, std::string>, kernel_registers> rows; // sorted
  kernel_registers *row = nullptr;
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function '")) {
      const std::string kernel = kernelName(quoted(line, 0)), architecture = quoted(line, 1).str();
      row = &rows[{kernel, architecture}];
      *row = {kernel, architecture};
    } else if (row && line.contains("bytes spill stores")) {
      row->spill_stores = numberBefore(line, "bytes spill stores");
      row->spill_loads = numberBefore(line, "bytes spill loads");
    } else if (row && line.contains(" registers")) {
      row->registers = numberBefore(line, "registers");
      row->shared_bytes = numberBefore(line, "bytes smem");
    }
  }
  register_table table;
  for (auto &[key, usage] : rows)
    table.kernels.push_back(usage);
  return table;
}
