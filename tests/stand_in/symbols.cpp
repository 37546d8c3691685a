// SPDX-License-Identifier: Apache-2.0
#include "symbols.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trainc::stand_in {

namespace {

// The program's file, for as long as it runs.
const char *mapped_program() {
  static const char *data = [] {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
      return static_cast<const char *>(nullptr);
    void *address =
        mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    return address == MAP_FAILED ? nullptr : static_cast<const char *>(address);
  }();
  return data;
}

uintptr_t load_address() {
  uintptr_t result = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        *static_cast<uintptr_t *>(data) = info->dlpi_addr;
        return 1; // the program comes first
      },
      &result);
  return result;
}

std::string demangled(const char *name) {
  int status = 0;
  char *text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

template <typename Visit> void each_symbol(unsigned kind, Visit visit) {
  const char *file = mapped_program();
  if (file == nullptr)
    return;
  const auto &header = *reinterpret_cast<const ElfW(Ehdr) *>(file);
  const auto *sections = reinterpret_cast<const ElfW(Shdr) *>(file + header.e_shoff);
  const uintptr_t base = load_address();
  for (int i = 0; i < header.e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB)
      continue;
    const auto *symbols = reinterpret_cast<const ElfW(Sym) *>(file + sections[i].sh_offset);
    const char *names = file + sections[sections[i].sh_link].sh_offset;
    for (size_t s = 0; s < sections[i].sh_size / sizeof *symbols; ++s)
      if (ELF64_ST_TYPE(symbols[s].st_info) == kind && symbols[s].st_shndx != SHN_UNDEF)
        visit(base + symbols[s].st_value, symbols[s].st_size, names + symbols[s].st_name);
  }
}

} // namespace

std::string function_at(uintptr_t address) {
  std::string result;
  each_symbol(STT_FUNC, [&](uintptr_t at, uint64_t, const char *name) {
    if (at == address && result.empty())
      result = demangled(name);
  });
  return result;
}

std::vector<symbol> variables_between(uintptr_t begin, uintptr_t end) {
  std::vector<symbol> result;
  each_symbol(STT_OBJECT, [&](uintptr_t at, uint64_t bytes, const char *name) {
    if (at >= begin && at < end && bytes > 0) // marks of the linker have no size
      result.push_back({at, bytes, demangled(name)});
  });
  std::sort(result.begin(), result.end(),
            [](const symbol &a, const symbol &b) { return a.address < b.address; });
  return result;
}

} // namespace trainc::stand_in
