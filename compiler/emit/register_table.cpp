// SPDX-License-Identifier: Apache-2.0
//
// What ptxas says about each kernel, as a table: registers, spills, shared memory.
#include "compiler/emit/emit.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <map>

using namespace llvm;

namespace {

struct Usage {
  int64_t registers = 0, spillStores = 0, spillLoads = 0, sharedBytes = 0;
};

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

std::string trainc::registerTable(StringRef log) {
  std::map<std::pair<std::string, std::string>, Usage> rows; // by kernel and architecture
  Usage *row = nullptr;
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function '"))
      row = &rows[{kernelName(quoted(line, 0)), quoted(line, 1).str()}];
    else if (row && line.contains("bytes spill stores")) {
      row->spillStores = numberBefore(line, "bytes spill stores");
      row->spillLoads = numberBefore(line, "bytes spill loads");
    } else if (row && line.contains(" registers")) {
      row->registers = numberBefore(line, "registers");
      row->sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  size_t width = strlen("kernel");
  for (auto &[key, usage] : rows)
    width = std::max(width, key.first.size());
  std::string text;
  auto print = [&](StringRef kernel, auto &&...columns) {
    text += kernel.str() + std::string(width - kernel.size(), ' ') +
            formatv("  {0,-12}  {1,9}  {2,12}  {3,11}  {4,12}\n", columns...).str();
  };
  print("kernel", "architecture", "registers", "spill stores", "spill loads", "shared bytes");
  for (auto &[key, usage] : rows)
    print(key.first, key.second, usage.registers, usage.spillStores, usage.spillLoads,
          usage.sharedBytes);
  return text;
}
