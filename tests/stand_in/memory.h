// SPDX-License-Identifier: Apache-2.0
//
// Device memory: one stretch of addresses that only cudaMalloc hands out. And pinned
// host memory, which copies on a stream may read late.
#pragma once

#include "shadow.h"

#include <string>

namespace trainc::stand_in {

// Null where the device has too little left.
void *allocate_device(int device, size_t bytes);
bool free_device(void *address);
size_t used_bytes(int device);

// Addresses without memory, and memory for whole pages of them, which may be accessed once that is
// allowed. 0 and false where it cannot be done.
uintptr_t reserve_device(size_t bytes, size_t page);
bool free_reserved(uintptr_t address, size_t bytes);
bool map_reserved(int device, uintptr_t address, size_t bytes);
bool allow_mapped(uintptr_t address, size_t bytes);
bool unmap_reserved(uintptr_t address, size_t bytes);

void *allocate_pinned(size_t bytes);
bool free_pinned(void *address);
bool is_pinned(const void *address, size_t bytes);

inline bool is_device(const void *address) {
  return reinterpret_cast<uintptr_t>(address) - device_region.base < device_region.size;
}
// Whether all bytes lie within one allocation.
bool is_allocated(const void *address, size_t bytes);
// "byte 12 of 400 of device allocation 2".
std::string describe_device(const void *address);

// An operation other than a kernel reads or writes device memory; `what` names the
// bytes in a message ("the source", "matrix A").
void read_range(const void *address, size_t bytes, const char *what);
void write_range(void *address, size_t bytes, const char *what);

} // namespace trainc::stand_in
