// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/frozen_weights.h"

#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/files/safetensors.h"
#include "runtime/process/signs_of_life.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace trainc {
namespace {

[[noreturn]] void refuse_base(const std::string &path, const std::string &why) {
  throw failure(exit_checkpoint, path + ": " + why +
                                     "\n  try: the file that the compiler wrote with this trainer, "
                                     "or compile it again");
}

const stored_tensor &stored_in(const safetensors_index &index, const std::string &path,
                               const char *name) {
  const auto found = index.tensors.find(name);
  if (found == index.tensors.end())
    refuse_base(path, std::string("has no frozen weight '") + name + "'");
  return found->second;
}

} // namespace

frozen_weights::frozen_weights(const program &program, const std::string &path) {
  const input_file file(path, exit_checkpoint);
  const safetensors_index index = read_safetensors_index(file, exit_checkpoint);
  const parameter_place *frozen =
      program.parameters + program.parameter_count - program.frozen_count;
  begin_ = stored_in(index, path, frozen->tensor.name).offset - frozen->tensor.offset;
  bytes_ = static_cast<size_t>(begin_ + program.frozen_bytes);
  if (begin_ < 0 || begin_ % 64 != 0 || static_cast<int64_t>(bytes_) > file.size())
    refuse_base(path, "does not have frozen weights where the trainer expects them");
  void *mapped = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (mapped == MAP_FAILED)
    throw failure(exit_machine, path + ": cannot be mapped: " + strerror(errno));
  mapping_ = static_cast<char *>(mapped);
  uint32_t digest = 0; // as the compiler makes it
  // Whether all of them are there, where they are expected, and whole.
  for (int64_t i = 0; i < program.frozen_count; ++i) {
    const tensor_place &weight = frozen[i].tensor;
    const stored_tensor &stored = stored_in(index, path, weight.name);
    const auto checksum = index.metadata.find(std::string(tensor_checksum_prefix) + weight.name);
    if (stored.type != safetensors_name_of(weight.type) ||
        stored.offset != begin_ + weight.offset || stored.bytes != byte_count(weight))
      refuse_base(path, std::string("has another form of the frozen weight '") + weight.name + "'");
    uint32_t sum = 0;
    in_transfers(stored.bytes, [&](int64_t from, int64_t bytes) {
      sum = crc32c(sum, mapping_ + stored.offset + from, static_cast<size_t>(bytes));
      note_work();
    });
    digest = crc32c(digest, &sum, sizeof sum);
    if (checksum != index.metadata.end() && checksum->second != format_text("%08x", sum))
      refuse_base(path, std::string("the frozen weight '") + weight.name +
                            "' has other values than its checksum says");
  }
  if (*program.frozen_digest && format_text("%08x", digest) != program.frozen_digest)
    refuse_base(path, "has frozen weights of another model");
}

frozen_weights::~frozen_weights() {
  if (mapping_)
    munmap(mapping_, bytes_);
}

} // namespace trainc
