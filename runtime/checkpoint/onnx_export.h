// SPDX-License-Identifier: Apache-2.0
//
// Writes the trained model: the ONNX file without weights that the compiler left
// beside the trainer, and the initializers made from the parameters.
#pragma once

#include "runtime/files/file_operations.h"
#include "runtime/program.h"

#include <functional>
#include <string>
#include <vector>

namespace trainc {

// Above this size the weights go to `<path>.data`; one protobuf message cannot
// exceed 2 GB.
constexpr int64_t largest_inline_weights = 1'500'000'000;

// What `export_onnx` writes: a model, with a file of weights beside it where that is asked for or
// needed.
std::vector<std::string> files_of_export(const program &program, const std::string &path,
                                         bool external_data);

// Says the first initializer with a number that its type in the file makes infinite.
void warn_of_range(const program &program, const arenas &arenas,
                   const std::function<void(const std::string &)> &warn);

// Writes weights with their adapters added, by way of temporary names. Throws `failure` (exit_disk;
// exit_internal for a damaged template).
void export_onnx(const program &program, const arenas &arenas, const std::string &template_path,
                 const std::string &path, bool external_data, file_operations &files);

} // namespace trainc
