// SPDX-License-Identifier: Apache-2.0
//
// Manifests of data files.
#include "runtime/data/data_manifest.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/files/crc32c.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace trainc {
namespace {

using nlohmann::json;

constexpr int deepest_manifest = 4; // an object of arrays has 2

bool is_text(const json &object, const char *member) {
  return object.contains(member) && object[member].is_string();
}

// Nothing where it is somebody else's file.
std::optional<json> manifest_in(const std::string &name) {
  input_file file(name, exit_data);
  if (file.size() > largest_data_manifest)
    throw failure(exit_data, format_text("%s: has %lld bytes; a manifest of data has %lld at most"
                                         "\n  try: to make the data again with trainc-data; to use "
                                         "the file of data as it is, remove this one",
                                         name.c_str(), static_cast<long long>(file.size()),
                                         static_cast<long long>(largest_data_manifest)));
  const std::string text = file.whole_text();
  json object = bounded_json(text, deepest_manifest);
  if (object.is_discarded() && text.find(data_manifest_format) != std::string::npos)
    throw failure(exit_data, name + ": is damaged: it is no JSON\n  try: to remove it, or to make "
                                    "the data again");
  if (!object.is_object() || !is_text(object, "format") || object["format"] != data_manifest_format)
    return std::nullopt;
  return object;
}

} // namespace

std::string manifest_of(const std::string &path) { return path + ".json"; }

uint32_t sampled_digest(const input_file &file) {
  constexpr int64_t block = 4096, blocks = 64;
  uint32_t digest = 0;
  std::vector<char> bytes(block);
  int64_t last = std::max<int64_t>(file.size() - block, 0);
  for (int64_t i = 0; i <= blocks; ++i) {
    int64_t length = std::min(block, file.size());
    file.read(last / blocks * i + last % blocks * i / blocks, bytes.data(), length);
    digest = crc32c(digest, bytes.data(), static_cast<size_t>(length));
  }
  return digest;
}

file_content content_of(const input_file &file, file_content before) {
  std::vector<char> bytes(1 << 20);
  uint32_t digest = before.digest;
  for (int64_t done = 0; done < file.size();) {
    const int64_t length = std::min(static_cast<int64_t>(bytes.size()), file.size() - done);
    file.read(done, bytes.data(), length);
    digest = crc32c(digest, bytes.data(), static_cast<size_t>(length));
    done += length;
  }
  return {before.bytes + file.size(), digest};
}

bool is_data_manifest(const std::string &name) { return manifest_in(name).has_value(); }

std::optional<data_manifest> read_data_manifest(const std::string &path) {
  std::string name = manifest_of(path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(name, ignored))
    return std::nullopt;
  std::optional<json> parsed = manifest_in(name);
  if (!parsed)
    return std::nullopt;
  const json &object = *parsed;
  auto natural = [](const json &value) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
  };
  data_manifest manifest = {};
  std::optional<file_type> type =
      is_text(object, "type") ? file_type_of(object["type"].get<std::string>()) : std::nullopt;
  bool whole = type && object.contains("shape") && object["shape"].is_array() &&
               object.contains("bytes") && natural(object["bytes"]) &&
               is_text(object, "checksum") && is_text(object, "digest");
  if (whole)
    for (const json &extent : object["shape"])
      whole &= natural(extent);
  if (!whole)
    throw failure(exit_data, name + ": is damaged: type, shape, bytes, checksum and digest are "
                                    "expected\n  try: to remove it, or to make the data again");
  manifest.type = *type;
  manifest.shape = object["shape"].get<std::vector<int64_t>>();
  manifest.bytes = object["bytes"].get<int64_t>();
  auto number = [&](const char *member) {
    return static_cast<uint32_t>(
        std::strtoul(object[member].get<std::string>().c_str(), nullptr, 16));
  };
  manifest.checksum = number("checksum");
  manifest.digest = number("digest");
  return manifest;
}

[[noreturn]] static void refuse_file(const input_file &file, const std::string &problem) {
  throw failure(exit_data, file.path() + ": " + problem +
                               "\n  try: to make the data again with trainc-data; to use the file "
                               "as it is, remove " +
                               manifest_of(file.path()));
}

void check_all_contents(const input_file &file) {
  const std::optional<data_manifest> manifest = read_data_manifest(file.path());
  if (manifest && manifest->checksum != content_of(file).digest)
    refuse_file(file, "has other contents than " + manifest_of(file.path()) + " says");
}

void check_data_manifest(const input_file &file, file_type type,
                         const std::vector<int64_t> &shape) {
  std::optional<data_manifest> manifest = read_data_manifest(file.path());
  if (!manifest)
    return;
  std::string name = manifest_of(file.path()), problem;
  auto text = [](file_type kind, const std::vector<int64_t> &extents) {
    return std::string(name_of(kind)) + " " + shape_text(extents);
  };
  if (manifest->bytes != file.size())
    problem = format_text("has %lld bytes, but %s says %lld", static_cast<long long>(file.size()),
                          name.c_str(), static_cast<long long>(manifest->bytes));
  else if (manifest->type != type || manifest->shape != shape)
    problem = "is read as " + text(type, shape) + ", but " + name + " says " +
              text(manifest->type, manifest->shape);
  else if (manifest->digest != sampled_digest(file))
    problem = "has other contents than " + name + " says";
  if (!problem.empty())
    refuse_file(file, problem);
}

} // namespace trainc
