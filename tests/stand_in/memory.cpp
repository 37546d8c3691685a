// SPDX-License-Identifier: Apache-2.0
#include "memory.h"
#include "operations.h"
#include "report.h"
#include "settings.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace trainc::stand_in {

namespace {

constexpr size_t address_space = size_t{64} << 30;
constexpr size_t alignment = 256; // what cudaMalloc itself gives
constexpr size_t gap = 4096;      // between allocations, so that a step too far shows
// Never-written bytes are NaN in every format. Larger memory keeps its zero pages,
// so that what is never touched costs nothing; reading either ends the program.
constexpr size_t most_filled = size_t{1} << 30;

struct allocation {
  size_t bytes;
  int device;
  int number;
  bool is_mapped = false; // within reserved addresses
  bool is_allowed = true; // to be accessed
};

std::map<uintptr_t, allocation> &allocations() {
  static std::map<uintptr_t, allocation> map;
  return map;
}
std::map<uintptr_t, size_t> &pinned() {
  static std::map<uintptr_t, size_t> map;
  return map;
}
std::map<uintptr_t, size_t> &reserved() {
  static std::map<uintptr_t, size_t> map;
  return map;
}
int allocated_so_far = 0;

size_t rounded(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
}

// First address, a multiple of `page`, with room for so many bytes; 0 where there is none.
uintptr_t find_room(size_t bytes, size_t page = alignment) {
  if (device_region.size == 0)
    map_region(device_region, 0, address_space);
  std::map<uintptr_t, size_t> taken = reserved();
  for (const auto &[address, one] : allocations())
    if (!one.is_mapped)
      taken[address] = rounded(one.bytes) + gap;
  auto whole = [page](uintptr_t address) { return (address + page - 1) / page * page; };
  uintptr_t from = whole(device_region.base);
  for (const auto &[address, size] : taken) {
    if (address >= from && address - from >= bytes)
      return from;
    from = whole(address + size);
  }
  return device_region.base + device_region.size - from >= bytes ? from : 0;
}

void begin_allocation(uintptr_t at, const allocation &made) {
  allocations()[at] = made;
  forget(device_region, at - device_region.base, rounded(made.bytes));
  if (made.bytes <= most_filled)
    std::memset(reinterpret_cast<void *>(at), 0xff, made.bytes);
}

const std::pair<const uintptr_t, allocation> *find(const void *address) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  auto next = allocations().upper_bound(at);
  if (next == allocations().begin())
    return nullptr;
  const auto &entry = *std::prev(next);
  const size_t behind = entry.second.is_mapped ? 0 : gap;
  return at < entry.first + rounded(entry.second.bytes) + behind ? &entry : nullptr;
}

} // namespace

size_t used_bytes(int device) {
  size_t bytes = 0;
  for (const auto &[address, one] : allocations())
    bytes += one.device == device ? rounded(one.bytes) : 0;
  return bytes;
}

void *allocate_device(int device, size_t bytes) {
  if (used_bytes(device) + rounded(bytes) > options().free_memory)
    return nullptr;
  const uintptr_t at = find_room(rounded(bytes) + gap);
  if (at == 0)
    return nullptr;
  begin_allocation(at, {bytes, device, allocated_so_far++});
  return reinterpret_cast<void *>(at);
}

bool free_device(void *address) {
  const auto found = allocations().find(reinterpret_cast<uintptr_t>(address));
  if (found == allocations().end() || found->second.is_mapped)
    return false;
  allocations().erase(found);
  return true;
}

uintptr_t reserve_device(size_t bytes, size_t page) {
  const uintptr_t at =
      find_room(bytes + page, page); // and a page after, so that a step too far shows
  if (at != 0)
    reserved()[at] = bytes + page;
  return at;
}

bool free_reserved(uintptr_t address, size_t bytes) {
  const auto next = allocations().lower_bound(address);
  if (next != allocations().end() && next->first < address + bytes)
    return false; // there is memory still
  return reserved().erase(address) == 1;
}

bool map_reserved(int device, uintptr_t address, size_t bytes) {
  auto next = reserved().upper_bound(address);
  if (next == reserved().begin() || used_bytes(device) + bytes > options().free_memory)
    return false;
  const auto &[begin, size] = *std::prev(next);
  if (address + bytes > begin + size || find(reinterpret_cast<void *>(address)) != nullptr)
    return false;
  begin_allocation(address, {bytes, device, allocated_so_far++, /*is_mapped=*/true,
                             /*is_allowed=*/false});
  return true;
}

namespace {

allocation *mapped_at(uintptr_t address, size_t bytes) {
  const auto found = allocations().find(address);
  const bool is_it =
      found != allocations().end() && found->second.is_mapped && found->second.bytes == bytes;
  return is_it ? &found->second : nullptr;
}

} // namespace

bool allow_mapped(uintptr_t address, size_t bytes) {
  allocation *mapped = mapped_at(address, bytes);
  if (mapped != nullptr)
    mapped->is_allowed = true;
  return mapped != nullptr;
}

bool unmap_reserved(uintptr_t address, size_t bytes) {
  return mapped_at(address, bytes) != nullptr && allocations().erase(address) == 1;
}

void *allocate_pinned(size_t bytes) {
  void *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (address != nullptr)
    pinned()[reinterpret_cast<uintptr_t>(address)] = bytes;
  return address;
}

bool free_pinned(void *address) {
  if (pinned().erase(reinterpret_cast<uintptr_t>(address)) == 0)
    return false;
  std::free(address);
  return true;
}

bool is_pinned(const void *address, size_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  auto next = pinned().upper_bound(at);
  if (next == pinned().begin())
    return false;
  const auto &[begin, size] = *std::prev(next);
  return at + bytes <= begin + size;
}

bool is_allocated(const void *address, size_t bytes) {
  const uintptr_t end = reinterpret_cast<uintptr_t>(address) + bytes;
  const auto *entry = find(address);
  // Memory of neighbouring pages is one.
  while (entry != nullptr && entry->second.is_mapped && entry->second.is_allowed &&
         end > entry->first + entry->second.bytes)
    entry = find(reinterpret_cast<void *>(entry->first + entry->second.bytes));
  return entry != nullptr && entry->second.is_allowed && end <= entry->first + entry->second.bytes;
}

std::string describe_device(const void *address) {
  const auto *entry = find(address);
  if (entry == nullptr)
    return "an address that no allocation holds";
  const size_t offset = reinterpret_cast<uintptr_t>(address) - entry->first;
  return "byte " + std::to_string(offset) + " of device allocation " +
         std::to_string(entry->second.number) + ", which has " +
         std::to_string(entry->second.bytes);
}

namespace {

size_t checked_offset(const void *address, size_t bytes, const char *what) {
  if (!is_device(address) || !is_allocated(address, bytes))
    fail(current_operation(), std::string(what) + " (" + std::to_string(bytes) +
                                  " bytes) reaches outside device memory: it starts at " +
                                  (is_device(address) ? describe_device(address)
                                                      : "an address that is not device memory"));
  return reinterpret_cast<uintptr_t>(address) - device_region.base;
}

} // namespace

void read_range(const void *address, size_t bytes, const char *what) {
  if (bytes != 0)
    check_memory<access_kind::read, false>(device_region, checked_offset(address, bytes, what),
                                           bytes, nullptr);
}

void write_range(void *address, size_t bytes, const char *what) {
  if (bytes != 0)
    check_memory<access_kind::write, false>(device_region, checked_offset(address, bytes, what),
                                            bytes, nullptr);
}

} // namespace trainc::stand_in
