// SPDX-License-Identifier: Apache-2.0
//
// By the driver's functions for virtual memory. The runtime library knows their addresses, so that
// a trainer is not linked with the driver and says of itself what it can where there is none.
#include "runtime/cuda/mapped_memory.h"

#include "runtime/cuda/errors.h"
#include "runtime/failure.h"

#include <cuda.h>

#include <algorithm>

namespace trainc {
namespace {

constexpr unsigned api_version = 12000; // whose signatures these are

// Null where the driver has no such function.
template <typename Function> Function *found(const char *name, Function *) {
  void *address = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPointByVersion(name, &address, api_version, 0, &result) != cudaSuccess ||
      result != cudaDriverEntryPointSuccess) {
    cudaGetLastError(); // which nobody is to find later
    return nullptr;
  }
  return reinterpret_cast<Function *>(address);
}

#define DRIVER_FUNCTION(name) found(#name, static_cast<decltype(&::name)>(nullptr))

struct driver_functions {
  decltype(&::cuMemGetAllocationGranularity) granularity =
      DRIVER_FUNCTION(cuMemGetAllocationGranularity);
  decltype(&::cuMemAddressReserve) reserve = DRIVER_FUNCTION(cuMemAddressReserve);
  decltype(&::cuMemAddressFree) free = DRIVER_FUNCTION(cuMemAddressFree);
  decltype(&::cuMemCreate) create = DRIVER_FUNCTION(cuMemCreate);
  decltype(&::cuMemRelease) release = DRIVER_FUNCTION(cuMemRelease);
  decltype(&::cuMemMap) map = DRIVER_FUNCTION(cuMemMap);
  decltype(&::cuMemUnmap) unmap = DRIVER_FUNCTION(cuMemUnmap);
  decltype(&::cuMemSetAccess) set_access = DRIVER_FUNCTION(cuMemSetAccess);

  bool are_there() const {
    return granularity && reserve && free && create && release && map && unmap && set_access;
  }
};

const driver_functions &driver() {
  static const driver_functions functions;
  return functions;
}

void check(CUresult status, const char *operation) {
  if (status != CUDA_SUCCESS)
    throw failure(exit_machine, format_text("%s: CUDA's driver reports error %d", operation,
                                            static_cast<int>(status)));
}

CUmemLocation current_device() {
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  check_cuda(cudaGetDevice(&location.id), "memory in pages");
  return location;
}

CUmemAllocationProp kind_of_memory() {
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = current_device();
  return kind;
}

} // namespace

int64_t mapped_memory::page_bytes() {
  size_t bytes = 0;
  const CUmemAllocationProp kind = kind_of_memory();
  if (!driver().are_there() ||
      driver().granularity(&bytes, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS)
    return 0;
  return static_cast<int64_t>(bytes);
}

std::vector<element_range> mapped_memory::pages_of(std::vector<element_range> pieces,
                                                   int64_t page) {
  std::sort(pieces.begin(), pieces.end(),
            [](const element_range &a, const element_range &b) { return a.begin < b.begin; });
  std::vector<element_range> pages;
  for (const element_range &piece : pieces) {
    const element_range whole = {piece.begin / page * page, (piece.end + page - 1) / page * page};
    if (piece.begin >= piece.end)
      continue;
    if (!pages.empty() && whole.begin <= pages.back().end)
      pages.back().end = std::max(pages.back().end, whole.end);
    else
      pages.push_back(whole);
  }
  return pages;
}

char *mapped_memory::allocate(int64_t bytes, const std::vector<element_range> &pages) {
  const int64_t page = page_bytes();
  const auto size = static_cast<size_t>(std::max(page, (bytes + page - 1) / page * page));
  CUdeviceptr base = 0;
  check(driver().reserve(&base, size, 0, 0, 0), "addresses for memory in pages");
  base_ = base;
  bytes_ = size;
  const CUmemAllocationProp kind = kind_of_memory();
  CUmemAccessDesc access = {};
  access.location = kind.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (const element_range &each : pages) {
    const auto length = static_cast<size_t>(each.end - each.begin);
    const CUdeviceptr place = base + static_cast<CUdeviceptr>(each.begin);
    CUmemGenericAllocationHandle memory = 0;
    check(driver().create(&memory, length, &kind, 0), "memory in pages");
    const CUresult mapped = driver().map(place, length, 0, memory, 0);
    driver().release(memory); // which the addresses keep
    check(mapped, "memory in pages");
    mapped_.push_back(each);
    check(driver().set_access(place, length, &access, 1), "memory in pages");
  }
  return reinterpret_cast<char *>(base_);
}

mapped_memory::~mapped_memory() {
  for (const element_range &each : mapped_)
    driver().unmap(static_cast<CUdeviceptr>(base_) + static_cast<CUdeviceptr>(each.begin),
                   static_cast<size_t>(each.end - each.begin));
  if (bytes_ > 0)
    driver().free(static_cast<CUdeviceptr>(base_), static_cast<size_t>(bytes_));
}

} // namespace trainc
