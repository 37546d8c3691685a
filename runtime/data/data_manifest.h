// SPDX-License-Identifier: Apache-2.0
//
// What trainc-data says about a data file that it made, as JSON in FILE.json beside it.
#pragma once

#include "runtime/files/file_operations.h"
#include "runtime/files/npy.h"

#include <optional>
#include <string>
#include <vector>

namespace trainc {

constexpr const char *data_manifest_format = "trainc data 1";
constexpr int64_t largest_data_manifest = 64 << 20; // bytes; larger ones are not read

struct data_manifest {
  file_type type;
  std::vector<int64_t> shape;
  int64_t bytes;     // of the file
  uint32_t checksum; // CRC-32C of all of it
  uint32_t digest;   // `sampled_digest`
};

std::string manifest_of(const std::string &path);

// A CRC-32C of 65 blocks of 4 KiB from the file's beginning to its end, which tells files apart
// without reading them whole.
uint32_t sampled_digest(const input_file &file);

// What tells a file from another of its name, were they other in one byte.
struct file_content {
  int64_t bytes = 0;
  uint32_t digest = 0; // CRC-32C of all of it
  bool operator==(const file_content &) const = default;
};
file_content content_of(const input_file &file, file_content before = {}); // after other files

// Whether the file says that it is one, sound or not. Throws `failure` (exit_data) where it is too
// large.
bool is_data_manifest(const std::string &name);

// Nothing where there is no manifest of this format beside the file; throws `failure` (exit_data)
// where one is damaged or too large.
std::optional<data_manifest> read_data_manifest(const std::string &path);

// Compares a file that is opened as such an array with its manifest, if it has one: size, type,
// shape and sampled contents. Throws `failure` (exit_data).
void check_data_manifest(const input_file &file, file_type type, const std::vector<int64_t> &shape);

// Compares all of the file with the checksum of its manifest, if it has one. Throws `failure`
// (exit_data).
void check_all_contents(const input_file &file);

} // namespace trainc
