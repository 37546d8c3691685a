// SPDX-License-Identifier: Apache-2.0
//
// The build id is in a note of the program that is mapped into memory.
#include "runtime/files/own_files.h"

#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/files/safetensors.h"

#include <cstring>
#include <filesystem>
#include <link.h>

namespace trainc {
namespace {

constexpr size_t note_alignment = 4; // bytes, of a note's name and its content

size_t aligned(size_t bytes) {
  return (bytes + note_alignment - 1) / note_alignment * note_alignment;
}

std::string hexadecimal(const unsigned char *bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += format_text("%02x", bytes[i]);
  return text;
}

// The id among the notes of a segment.
std::string id_among(const char *notes, size_t size) {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) head;
    memcpy(&head, notes + at, sizeof head);
    const char *name = notes + at + sizeof head, *content = name + aligned(head.n_namesz);
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
      return hexadecimal(reinterpret_cast<const unsigned char *>(content), head.n_descsz);
    at += sizeof head + aligned(head.n_namesz) + aligned(head.n_descsz);
  }
  return "";
}

// Called for the program first; libraries have ids of their own.
int find_id(dl_phdr_info *object, size_t, void *result) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const auto *notes = reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr);
    if (std::string id = id_among(notes, segment.p_memsz); !id.empty())
      *static_cast<std::string *>(result) = id;
  }
  return 1; // no further object
}

} // namespace

std::string own_build_id() {
  std::string id;
  dl_iterate_phdr(find_id, &id);
  return id;
}

std::string own_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

std::string frozen_file_now(const std::string &was, const std::string &folder,
                            const std::string &frozen_data) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const std::string name = fs::path(was).filename();
  if (!frozen_data.empty())
    return fs::is_regular_file(frozen_data, ignored) ? frozen_data : frozen_data + "/" + name;
  const std::string beside = folder + "/" + name;
  return !exists(was) && exists(beside) ? beside : was;
}

std::vector<std::string> own_files(const std::string &frozen_data) {
  const std::string parameters = own_file(own_folder(), own_parameters);
  std::vector<std::string> files{"/proc/self/exe", parameters,
                                 own_file(own_folder(), own_template)};
  try { // what else it maps; who needs the file says what is wrong with it
    const input_file file(parameters, exit_checkpoint);
    for (const auto &[key, path] : read_safetensors_index(file).metadata)
      if (key.starts_with(frozen_file_prefix))
        files.push_back(frozen_file_now(path, own_folder(), frozen_data));
  } catch (const failure &) {
  }
  return files;
}

std::string own_file(const std::string &folder, const std::string &name) {
  std::string early = folder + "/" + files_of_prefix + own_build_id() + "/" + name;
  return exists(early) ? early : folder + "/" + name;
}

} // namespace trainc
