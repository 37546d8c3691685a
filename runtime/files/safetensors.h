// SPDX-License-Identifier: Apache-2.0
//
// Safetensors: an 8-byte length, a JSON header that names tensors with their
// types, shapes and byte ranges, then the bytes.
#pragma once

#include "runtime/arena.h"
#include "runtime/files/data_types.h"
#include "runtime/files/file_operations.h"
#include "runtime/files/npy.h"
#include "runtime/files/tensor_view.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

// The length prefix and header for these tensors in this order, padded with
// spaces so that the data begins at a multiple of 64 bytes.
std::string safetensors_header(const std::vector<tensor_view> &tensors,
                               const std::map<std::string, std::string> &metadata);

// What a type of the format is as one of data; nothing where data cannot have it.
std::optional<file_type> data_type_of_stored(const std::string &name);

struct stored_tensor {
  std::string type; // as in the file: "F32"
  std::vector<int64_t> shape;
  int64_t offset; // in the file
  int64_t bytes;
};

struct safetensors_index {
  std::map<std::string, stored_tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// An entry of the metadata that says what a file holds that is not a state of a model.
constexpr char content_entry[] = "content", content_gradients[] = "gradients",
               content_dump[] = "tensors of a step";

// Validates everything: header size, JSON, duplicate names, types, shapes against
// byte ranges, ranges that cover the data without hole or overlap. Throws
// the file's `failure`.
safetensors_index read_safetensors_index(const input_file &file);

// Which other types of a file may fill a tensor of floats.
enum class taken_types { narrower, all_floats };

// Fills `target`, which lies in an arena, from the stored tensor of that name; an F32 tensor may
// fill an f64 one. Throws when it is missing or differs in type or shape.
void read_tensor(const input_file &file, const safetensors_index &index, const tensor_view &target,
                 arena_access &arenas, taken_types types = taken_types::narrower);

} // namespace trainc
