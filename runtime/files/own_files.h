// SPDX-License-Identifier: Apache-2.0
//
// Where the files lie that were made with this trainer: its initial parameters, its model for
// export. Beside it; but where a compiler was killed while it replaced a trainer and its files,
// those of the new one may still be in a folder named after it.
#pragma once

#include <string>
#include <vector>

namespace trainc {

// The build id of this program, which the linker makes from its content, in hexadecimal;
// empty where it was linked without.
std::string own_build_id();

// The folder of this program, which the trainer's files lie in.
std::string own_folder();

// The path of the file that was made with this trainer, which lies in `folder`.
std::string own_file(const std::string &folder, const std::string &name);

constexpr char own_parameters[] = "parameters.safetensors", own_template[] = "export_template.onnx";

// This program, the files above, and those that have its frozen weights: where they lie, or in
// `frozen_data` where that is not empty.
std::vector<std::string> own_files(const std::string &frozen_data = "");
// Where a file of frozen weights is that was there when the trainer was compiled: in `frozen_data`,
// a folder or the file itself; else there, or beside the trainer.
std::string frozen_file_now(const std::string &was, const std::string &folder,
                            const std::string &frozen_data);

// The name of the folder that holds a trainer's files until they have their place; the compiler
// makes it (compiler/output/output_exchange.cpp).
constexpr char files_of_prefix[] = ".files-of-";

} // namespace trainc
