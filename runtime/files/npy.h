// SPDX-License-Identifier: Apache-2.0
//
// The header of a NumPy .npy file, versions 1 to 3.
#pragma once

#include "runtime/files/data_types.h"
#include "runtime/files/file_operations.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trainc {

// Element types that a data file may hold.
using file_type = data_type;
std::optional<file_type> file_type_of(const std::string &name); // as name_of says it

struct npy_header {
  file_type type;
  std::vector<int64_t> shape;
  int64_t data_offset;
  int64_t element_count;
};

// Throws `failure` (exit_data) unless the file is a complete C-order array of one
// of the types above.
npy_header read_npy_header(const input_file &file);

// The header of a C-order array, of version 1: as many bytes for every number of samples, which the
// first axis of `shape` is, so that it may be written again when their number is known.
std::string npy_header_of(file_type type, const std::vector<int64_t> &shape);

// "[2, 3]"
std::string shape_text(std::span<const int64_t> shape);

} // namespace trainc
