// SPDX-License-Identifier: Apache-2.0
//
// A reader of safetensors files for the tools: the whole file in memory, the
// tensors by name. Not the runtime's on purpose: what checks a file must not share the
// mistakes of what wrote it.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace trainc::tools {

struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct StoredTensor {
  std::string dtype; // "F32", "F64", "I64", ...
  std::vector<int64_t> shape;
  const char *data = nullptr;
  size_t bytes = 0;
};

class SafetensorsFile {
public:
  // Throws InputError that names the file. A folder stands for all safetensors files in it.
  explicit SafetensorsFile(const std::string &path);

  const std::map<std::string, StoredTensor> &tensors() const { return byName; }

private:
  void readFile(const std::string &path);

  std::vector<std::vector<char>> contents;
  std::map<std::string, StoredTensor> byName;
};

// The values of an F32 or F64 tensor.
std::vector<double> valuesOf(const std::string &name, const StoredTensor &tensor);

// Of a file or a pipe. Throws InputError that names it.
std::string readWholeFile(const std::string &path);

} // namespace trainc::tools
