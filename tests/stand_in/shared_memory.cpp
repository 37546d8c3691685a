// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.h"
#include "report.h"
#include "shadow.h"
#include "symbols.h"

#include <map>

namespace trainc::stand_in {

namespace {

// Where no kernel has shared memory, the linker makes no section.
extern "C" char begin_of_shared[] asm("__start_trainc_shared") __attribute__((weak));
extern "C" char end_of_shared[] asm("__stop_trainc_shared") __attribute__((weak));

struct array {
  size_t offset, bytes;
  std::string kernel, name; // kernel with its parameters
};
std::vector<array> arrays;
std::vector<uint16_t> array_of_word; // 1 and up; 0: between arrays
bool known = false;                  // whether the program says where arrays are
std::map<const void *, std::vector<bool>> arrays_of_kernel;
const std::vector<bool> *own = nullptr; // by number of array

// `kernel(int)::partial` in its two parts.
array split(const symbol &one) {
  const size_t colons = one.name.rfind("::");
  const size_t at = colons == std::string::npos ? 0 : colons;
  return {one.address - shared_region.base, one.bytes, one.name.substr(0, at),
          one.name.substr(colons == std::string::npos ? 0 : at + 2)};
}

void find_arrays() {
  const auto begin = reinterpret_cast<uintptr_t>(&begin_of_shared[0]);
  const auto end = reinterpret_cast<uintptr_t>(&end_of_shared[0]);
  map_region(shared_region, begin, end - begin);
  array_of_word.assign(shared_region.size / 4 + 1, 0);
  for (const symbol &one : variables_between(begin, end)) {
    arrays.push_back(split(one));
    const size_t first = arrays.back().offset / 4;
    for (size_t word = first; word <= first + (one.bytes - 1) / 4; ++word)
      array_of_word[word] = static_cast<uint16_t>(arrays.size());
  }
  known = !arrays.empty();
}

} // namespace

void enter_shared_memory(const void *kernel) {
  if (&begin_of_shared[0] == &end_of_shared[0])
    return;
  if (shared_region.size == 0)
    find_arrays();
  auto [entry, is_new] = arrays_of_kernel.try_emplace(kernel);
  if (is_new) {
    const std::string name = function_at(reinterpret_cast<uintptr_t>(kernel));
    entry->second.push_back(false);
    for (const array &one : arrays)
      entry->second.push_back(name.empty() || one.kernel == name);
  }
  own = &entry->second;
}

bool is_own_array(size_t offset, size_t bytes) {
  if (!known)
    return true;
  const uint16_t first = array_of_word[offset / 4], last = array_of_word[(offset + bytes - 1) / 4];
  return first == last && (*own)[first] && offset >= arrays[first - 1].offset &&
         offset + bytes <= arrays[first - 1].offset + arrays[first - 1].bytes;
}

std::string describe_shared(size_t offset) {
  // The array it lies in or the last before it.
  const array *nearest = nullptr;
  for (size_t i = 0; i < arrays.size(); ++i)
    if ((*own)[i + 1] && arrays[i].offset <= offset)
      nearest = &arrays[i];
  if (nearest == nullptr)
    return "shared memory at offset " + std::to_string(offset);
  return "byte " + std::to_string(offset - nearest->offset) + " of the shared array '" +
         nearest->name + "', which has " + std::to_string(nearest->bytes);
}

} // namespace trainc::stand_in
