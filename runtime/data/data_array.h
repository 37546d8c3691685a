// SPDX-License-Identifier: Apache-2.0
//
// An array of numbers on the disk, in one file or, along its first axis, in several: what
// --data and --tokens name.
#pragma once

#include "runtime/files/file_operations.h"
#include "runtime/files/npy.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

// The files that a name given by the user stands for: FILE, FILE.safetensors:TENSOR (the part
// before the colon), or a pattern with *, ? and [], in natural order (x-2 before x-10), unless a
// file has just that name. Throws `failure` (exit_data) where a pattern fits none.
std::vector<std::string> files_of(const std::string &name);

// FILE:WEIGHT apart: the weight is 0 where there is none. Throws `failure` (exit_usage) for one
// that is not above 0.
struct weighted_name {
  std::string name;
  double weight;
};
weighted_name weighted(const std::string &item);

struct data_array {
  struct piece {
    std::unique_ptr<input_file> file;
    int64_t offset;       // bytes, of its first element
    int64_t first, count; // elements
  };
  std::string name; // as the user gave it
  file_type type = file_type::u8;
  std::vector<int64_t> shape; // of all pieces together
  std::vector<piece> pieces;

  int64_t element_count() const;
  // Throws `failure` that names the file where one has become shorter.
  void read(int64_t element, int64_t count, char *target) const;
  // "FILE: ... element 7 (byte 184)": which file has the element, and where.
  struct place {
    const std::string *path;
    int64_t element, byte;
  };
  place place_of(int64_t element) const;
};

// Opens .npy files, or the tensor TENSOR of FILE.safetensors:TENSOR; `tensor` is its name where
// none is given. Types and shapes, except the first axis, must agree. Throws `failure`
// (exit_data).
data_array open_array(const std::string &name, const std::string &tensor);

// Opens files of tokens, which are read as one after another: .npy and safetensors with one axis,
// llm.c's .bin, or raw integers of `raw_type` without a header. Without `raw_type` that is what
// a manifest beside the file says, else bytes, which must be able to hold `vocabulary` values (0:
// any will do). Throws `failure` (exit_data).
data_array open_tokens(const std::string &name, std::optional<file_type> raw_type,
                       int64_t vocabulary);

} // namespace trainc
