// SPDX-License-Identifier: Apache-2.0
//
// The tools' safetensors reader: eight bytes of header length, a JSON header,
// the data. Offsets are checked against the file before anything is read.
#include "tools/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

namespace trainc::tools {

std::string readWholeFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream)
    text << stream.rdbuf();
  if (!stream)
    throw InputError(path + ": cannot be read");
  return text.str();
}

SafetensorsFile::SafetensorsFile(const std::string &path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) {
    readFile(path);
    return;
  }
  for (const fs::directory_entry &entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".safetensors")
      readFile(entry.path().string());
  if (byName.empty())
    throw InputError(path + ": holds no safetensors file");
}

void SafetensorsFile::readFile(const std::string &path) {
  std::string text = readWholeFile(path);
  contents.emplace_back(text.begin(), text.end());
  const std::vector<char> &bytes = contents.back();
  uint64_t headerBytes = 0;
  if (bytes.size() >= sizeof(headerBytes))
    std::memcpy(&headerBytes, bytes.data(), sizeof(headerBytes));
  if (bytes.size() < sizeof(headerBytes) || headerBytes > bytes.size() - sizeof(headerBytes))
    throw InputError(path + ": is no safetensors file, or a truncated one");

  const char *header = bytes.data() + sizeof(headerBytes);
  const char *data = header + headerBytes;
  size_t dataBytes = bytes.size() - sizeof(headerBytes) - headerBytes;
  try {
    nlohmann::json tensors = nlohmann::json::parse(header, data);
    for (const auto &[name, entry] : tensors.items()) {
      if (name == "__metadata__")
        continue;
      auto [begin, end] = entry.at("data_offsets").get<std::pair<size_t, size_t>>();
      if (begin > end || end > dataBytes)
        throw InputError(path + ": tensor '" + name + "' lies outside the file");
      byName[name] = {entry.at("dtype").get<std::string>(),
                      entry.at("shape").get<std::vector<int64_t>>(), data + begin, end - begin};
    }
  } catch (const nlohmann::json::exception &) {
    throw InputError(path + ": has an unreadable safetensors header");
  }
}

template <typename Stored> static std::vector<double> widen(const StoredTensor &tensor) {
  std::vector<double> values(tensor.bytes / sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    Stored value;
    std::memcpy(&value, tensor.data + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<double>(value);
  }
  return values;
}

std::vector<double> valuesOf(const std::string &name, const StoredTensor &tensor) {
  if (tensor.dtype == "F64")
    return widen<double>(tensor);
  if (tensor.dtype == "F32")
    return widen<float>(tensor);
  throw InputError("tensor '" + name + "' has type " + tensor.dtype + ", expected F32 or F64");
}

} // namespace trainc::tools
