// SPDX-License-Identifier: Apache-2.0
//
// The tools' safetensors reader: eight bytes of header length, a JSON header,
// the data. Offsets are checked against the file before anything is read.
#include "tools/safetensors.h"

#include "runtime/files/bounded_json.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace trainc::tools {

using nlohmann::json;

static constexpr int kDeepestHeader = 4; // object of objects of lists, as the parser counts

std::string readWholeFile(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error; // of a path that is not there: reading it fails below
  fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::directory || type == fs::file_type::character)
    throw InputError(path + ": is no file");
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream && stream.peek() != std::ifstream::traits_type::eof())
    text << stream.rdbuf();
  else if (stream.eof())
    return "";
  if (!stream)
    throw InputError(path + ": cannot be read");
  return text.str();
}

// 0 for a type that the format does not have.
static size_t bytesOf(const std::string &dtype) {
  for (const auto &[bytes, types] :
       std::map<size_t, std::set<std::string>>{{1, {"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"}},
                                               {2, {"U16", "I16", "F16", "BF16"}},
                                               {4, {"U32", "I32", "F32"}},
                                               {8, {"U64", "I64", "F64"}}})
    if (types.count(dtype))
      return bytes;
  return 0;
}

// Type, shape and size, but not where the data lie; false where the entry does not say them.
static bool readEntry(const json &entry, StoredTensor &tensor) {
  auto isList = [&](const char *key) {
    auto found = entry.find(key);
    return found != entry.end() && found->is_array() &&
           std::all_of(found->begin(), found->end(), [](const json &value) {
             return value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
           });
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !isList("shape") || !isList("data_offsets") || entry["data_offsets"].size() != 2)
    return false;
  tensor.dtype = entry["dtype"].get<std::string>();
  tensor.shape = entry["shape"].get<std::vector<int64_t>>();
  tensor.bytes = bytesOf(tensor.dtype);
  bool good = tensor.bytes > 0;
  for (int64_t extent : tensor.shape)
    good &= !__builtin_mul_overflow(tensor.bytes, static_cast<size_t>(extent), &tensor.bytes);
  return good;
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
    throw InputError(path + ": is not safetensors file, or a truncated one");

  const char *header = bytes.data() + sizeof(headerBytes);
  const char *data = header + headerBytes;
  size_t dataBytes = bytes.size() - sizeof(headerBytes) - headerBytes;
  std::set<std::string> names;
  bool twice = false; // of two equal keys the library keeps the last
  auto note = [&](int depth, json::parse_event_t event, const json &value) {
    if (depth == 1 && event == json::parse_event_t::key)
      twice |= !names.insert(value.get<std::string>()).second;
  };
  json tensors = bounded_json({header, headerBytes}, kDeepestHeader, note);
  if (!tensors.is_object() || twice)
    throw InputError(path + ": has an unreadable safetensors header");
  for (const auto &[name, entry] : tensors.items()) {
    if (name == "__metadata__")
      continue;
    StoredTensor tensor;
    if (!readEntry(entry, tensor))
      throw InputError(path + ": tensor '" + name + "' has a damaged entry");
    auto begin = entry["data_offsets"][0].get<uint64_t>(),
         end = entry["data_offsets"][1].get<uint64_t>();
    if (begin > end || end > dataBytes)
      throw InputError(path + ": tensor '" + name + "' lies outside the file");
    if (end - begin != tensor.bytes)
      throw InputError(path + ": tensor '" + name +
                       "' has a byte range that does not fit its shape");
    tensor.data = data + begin;
    byName[name] = std::move(tensor);
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
