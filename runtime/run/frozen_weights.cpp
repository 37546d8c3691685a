// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/frozen_weights.h"

#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/files/own_files.h"
#include "runtime/process/signs_of_life.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <filesystem>
#include <map>
#include <sys/mman.h>

namespace trainc {
namespace {

constexpr int64_t page = frozen_page;

[[noreturn]] void refuse_base(const std::string &path, const std::string &why) {
  throw failure(exit_checkpoint, path + ": " + why +
                                     "\n  try: the file that the compiler wrote with this trainer, "
                                     "or compile it again");
}

[[noreturn]] void refuse_data(const std::string &path, const std::string &why) {
  throw failure(exit_checkpoint,
                path + ": " + why +
                    "\n  try: --frozen-data FOLDER, which has the model's external "
                    "data as they were when the trainer was compiled");
}

const stored_tensor &stored_in(const safetensors_index &index, const std::string &path,
                               const char *name) {
  const auto found = index.tensors.find(name);
  if (found == index.tensors.end())
    refuse_base(path, std::string("has no frozen weight '") + name + "'");
  return found->second;
}

// Where the part is now.
std::string path_of_part(const safetensors_index &index, const std::string &own_path, int64_t part,
                         const std::string &folder) {
  const auto found = index.metadata.find(frozen_file_prefix + std::to_string(part));
  if (found == index.metadata.end())
    refuse_base(own_path, "does not say where the model's external data are");
  return frozen_file_now(found->second, std::filesystem::path(own_path).parent_path(), folder);
}

// Those that are frozen, by their places.
std::vector<tensor_place> frozen_tensors(const program &program) {
  std::vector<tensor_place> tensors;
  for (const parameter_place &parameter : program.parameters.last(program.frozen_count))
    tensors.push_back(parameter.tensor);
  std::sort(tensors.begin(), tensors.end(),
            [](const tensor_place &a, const tensor_place &b) { return a.offset < b.offset; });
  return tensors;
}

} // namespace

void frozen_weights::map(const std::string &path, int64_t begin, int64_t bytes, int64_t offset) {
  const input_file file(path, exit_checkpoint);
  if (begin % page != 0 || begin + bytes > file.size())
    refuse_data(path, format_text("has %" PRId64 " bytes, expected at least %" PRId64, file.size(),
                                  begin + bytes));
  if (mmap(base_ + offset, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED | MAP_FIXED,
           file.descriptor(), begin) == MAP_FAILED)
    throw failure(exit_machine, path + ": cannot be mapped: " + strerror(errno));
}

frozen_weights::frozen_weights(const program &program, const std::string &path,
                               const std::string &folder) {
  const input_file file(path, exit_checkpoint);
  const safetensors_index index = read_safetensors_index(file);
  bytes_ = static_cast<size_t>((program.frozen_bytes + page - 1) / page * page);
  void *reserved =
      mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    throw failure(exit_machine, path + ": cannot be mapped: " + strerror(errno));
  base_ = static_cast<char *>(reserved);
  try {
    fill(program, path, index, folder);
  } catch (...) {
    munmap(base_, bytes_);
    throw;
  }
}

void frozen_weights::fill(const program &program, const std::string &path,
                          const safetensors_index &index, const std::string &folder) {
  std::vector<std::string> paths; // of parts
  int64_t behind_parts = 0;
  for (int64_t i = 0; i < std::ssize(program.frozen_parts); ++i) {
    const frozen_part &part = program.frozen_parts[i];
    paths.push_back(path_of_part(index, path, i, folder));
    std::error_code error;
    if (!std::filesystem::exists(paths.back(), error))
      refuse_data(paths.back(), "is not there, and has frozen weights of the model");
    map(paths.back(), part.begin, part.bytes, part.offset);
    behind_parts = std::max(behind_parts, (part.offset + part.bytes + page - 1) / page * page);
  }
  const std::vector<tensor_place> tensors = frozen_tensors(program);
  int64_t begin = 0; // of what lies behind the parts, in the file of parameters
  if (tensors.back().offset >= behind_parts) {
    const auto first =
        std::find_if(tensors.begin(), tensors.end(),
                     [&](const tensor_place &tensor) { return tensor.offset >= behind_parts; });
    begin = stored_in(index, path, first->name).offset - (first->offset - behind_parts);
    const int64_t bytes = tensors.back().offset + byte_count(tensors.back()) - behind_parts;
    if (begin < 0 || begin % page != 0)
      refuse_base(path, "does not have frozen weights where the trainer expects them");
    map(path, begin, bytes, behind_parts);
  }
  std::map<std::string, uint32_t> sums; // by name, as the compiler has them
  // Whether all of them are there, where they are expected, and whole.
  for (const tensor_place &weight : tensors) {
    const bool is_in_part = weight.offset < behind_parts;
    if (!is_in_part) {
      const stored_tensor &stored = stored_in(index, path, weight.name);
      if (stored.type != safetensors_name_of(weight.type) ||
          stored.offset != begin + weight.offset - behind_parts ||
          stored.bytes != byte_count(weight))
        refuse_base(path,
                    std::string("has another form of the frozen weight '") + weight.name + "'");
    }
    uint32_t sum = 0;
    in_transfers(byte_count(weight), [&](int64_t from, int64_t bytes) {
      sum = crc32c(sum, base_ + weight.offset + from, static_cast<size_t>(bytes));
      note_work();
    });
    sums[weight.name] = sum;
    const auto checksum = index.metadata.find(std::string(tensor_checksum_prefix) + weight.name);
    if (checksum == index.metadata.end() || checksum->second == format_text("%08x", sum))
      continue;
    const std::string why = std::string("the frozen weight '") + weight.name +
                            "' has other values than its checksum says";
    if (!is_in_part)
      refuse_base(path, why);
    size_t part = 0;
    while (part + 1 < paths.size() && program.frozen_parts[part + 1].offset <= weight.offset)
      ++part;
    refuse_data(paths[part], why);
  }
  uint32_t digest = 0;
  for (const auto &[name, sum] : sums)
    digest = crc32c(digest, &sum, sizeof sum);
  if (*program.frozen_digest && format_text("%08x", digest) != program.frozen_digest)
    refuse_base(path, "has frozen weights of another model");
}

frozen_weights::~frozen_weights() { munmap(base_, bytes_); }

} // namespace trainc
