// SPDX-License-Identifier: Apache-2.0
//
// The driver's functions for addresses that get memory in pages. Memory is the device's from its
// making on, and an allocation like others once it has addresses.
#include "cuda.h"
#include "errors.h"
#include "memory.h"
#include "operations.h"
#include "settings.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace trainc::stand_in;

namespace {

std::map<CUmemGenericAllocationHandle, size_t> made; // and not mapped yet
CUmemGenericAllocationHandle last_handle = 0;

bool is_whole(size_t bytes) { return bytes != 0 && bytes % options().page_bytes == 0; }

bool is_of_device(const CUmemLocation &location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 &&
         location.id < options().devices;
}

} // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags) {
  if (!is_of_device(prop->location))
    return CUDA_ERROR_INVALID_VALUE;
  *granularity = options().page_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  if (!is_whole(size) || alignment != 0 || flags != 0 || forbidden_in_capture())
    return CUDA_ERROR_INVALID_VALUE;
  *address = reserve_device(size, options().page_bytes);
  return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  return free_reserved(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags) {
  if (!is_whole(size) || flags != 0 || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      !is_of_device(prop->location) || forbidden_in_capture())
    return CUDA_ERROR_INVALID_VALUE;
  made[ *handle = ++last_handle] = size;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return made.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const auto found = made.find(handle);
  if (found == made.end() || found->second != size || offset != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  int device = 0;
  cudaGetDevice(&device);
  return map_reserved(device, address, size) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  finish_everything();
  return unmap_reserved(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc,
                        size_t count) {
  const bool allows = count == 1 && is_of_device(desc->location) &&
                      desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return allows && allow_mapped(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *result) {
  struct row {
    const char *name;
    void *address;
  };
  static const row rows[] = {
      {"cuMemGetAllocationGranularity", reinterpret_cast<void *>(cuMemGetAllocationGranularity)},
      {"cuMemAddressReserve", reinterpret_cast<void *>(cuMemAddressReserve)},
      {"cuMemAddressFree", reinterpret_cast<void *>(cuMemAddressFree)},
      {"cuMemCreate", reinterpret_cast<void *>(cuMemCreate)},
      {"cuMemRelease", reinterpret_cast<void *>(cuMemRelease)},
      {"cuMemMap", reinterpret_cast<void *>(cuMemMap)},
      {"cuMemUnmap", reinterpret_cast<void *>(cuMemUnmap)},
      {"cuMemSetAccess", reinterpret_cast<void *>(cuMemSetAccess)},
  };
  const auto *found = std::find_if(std::begin(rows), std::end(rows), [&](const row &each) {
    return options().page_bytes > 0 && std::strcmp(each.name, symbol) == 0;
  });
  *function = found == std::end(rows) ? nullptr : found->address;
  *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return returned(device_problem());
}
}
