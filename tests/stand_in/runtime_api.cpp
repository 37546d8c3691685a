// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime's functions for devices, memory, copies and launches.
#include "errors.h"
#include "executor.h"
#include "memory.h"
#include "operations.h"
#include "report.h"
#include "settings.h"
#include "streams.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace trainc::stand_in;

namespace {

int chosen_device = 0;

constexpr int multiprocessors = 132, block_threads = 1024, multiprocessor_threads = 2048;
constexpr int oldest_capability = 8; // of those that trainers are compiled for
constexpr int shared_bytes = 48 << 10, level_2_bytes = 50 << 20, bus_bits = 5120;

bool is_host(cudaMemcpyKind kind, bool source) {
  return kind == cudaMemcpyHostToHost ||
         kind == (source ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
}

cudaMemcpyKind resolved(cudaMemcpyKind kind, const void *to, const void *from) {
  if (kind != cudaMemcpyDefault)
    return kind;
  if (is_device(from))
    return is_device(to) ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
  return is_device(to) ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

operation_name copy_name(cudaMemcpyKind kind, size_t bytes) {
  switch (kind) {
  case cudaMemcpyHostToDevice:
    return {"copy to the device", nullptr, bytes};
  case cudaMemcpyDeviceToHost:
    return {"copy from the device", nullptr, bytes};
  case cudaMemcpyDeviceToDevice:
    return {"copy within the device", nullptr, bytes};
  default:
    return {"copy within the host", nullptr, bytes};
  }
}

uint64_t checksum(const void *from, size_t bytes) { // FNV-1a, eight bytes at a time
  const char *p = static_cast<const char *>(from);
  uint64_t sum = 0xcbf29ce484222325;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    uint64_t part;
    std::memcpy(&part, p, 8);
    sum = (sum ^ part) * 0x100000001b3;
    sum ^= sum >> 29;
  }
  for (; bytes > 0; --bytes, ++p)
    sum = (sum ^ static_cast<unsigned char>(*p)) * 0x100000001b3;
  return sum;
}

void copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  if (!is_host(kind, true))
    read_range(from, bytes, "the source");
  if (!is_host(kind, false))
    write_range(to, bytes, "the destination");
  const char *a = static_cast<const char *>(from), *b = static_cast<const char *>(to);
  if (bytes != 0 && a < b + bytes && b < a + bytes)
    fail(current_operation(), "source and destination overlap");
  std::memcpy(to, from, bytes);
}

bool wrong_direction(void *to, const void *from, cudaMemcpyKind kind) {
  return is_device(from) == is_host(kind, true) || is_device(to) == is_host(kind, false);
}

} // namespace

extern "C" {

// ---- devices

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 0;
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  *count = options().devices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (device < 0 || device >= options().devices)
    return returned(cudaErrorInvalidDevice);
  chosen_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  *device = chosen_device;
  return returned(device_problem());
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (device < 0 || device >= options().devices)
    return returned(cudaErrorInvalidDevice);
  switch (attribute) {
  case cudaDevAttrMaxThreadsPerBlock:
    *value = block_threads;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = shared_bytes;
    break;
  case cudaDevAttrWarpSize:
    *value = warpSize;
    break;
  case cudaDevAttrClockRate:
    *value = 1'000'000;
    break;
  case cudaDevAttrMultiProcessorCount:
    *value = multiprocessors;
    break;
  case cudaDevAttrL2CacheSize:
    *value = level_2_bytes;
    break;
  case cudaDevAttrMemoryClockRate:
    *value = 1'000'000;
    break;
  case cudaDevAttrGlobalMemoryBusWidth:
    *value = bus_bits;
    break;
  case cudaDevAttrMaxThreadsPerMultiProcessor:
    *value = multiprocessor_threads;
    break;
  case cudaDevAttrComputeCapabilityMajor:
    *value = options().capability_major;
    break;
  case cudaDevAttrComputeCapabilityMinor:
    *value = options().capability_minor;
    break;
  default:
    return returned(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (device < 0 || device >= options().devices)
    return returned(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "stand-in for a GPU");
  const int number = options().first + device;
  std::memcpy(properties->uuid.bytes, &number, sizeof number);
  properties->totalGlobalMem = options().free_memory;
  properties->sharedMemPerBlock = shared_bytes;
  properties->regsPerBlock = 65536;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = block_threads;
  properties->major = options().capability_major;
  properties->minor = options().capability_minor;
  properties->multiProcessorCount = multiprocessors;
  properties->l2CacheSize = level_2_bytes;
  properties->memoryBusWidth = bus_bits;
  properties->maxThreadsPerMultiProcessor = multiprocessor_threads;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (forbidden_in_capture())
    return returned(cudaErrorStreamCaptureUnsupported);
  finish_everything();
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }

cudaError_t cudaDriverGetVersion(int *version) {
  *version = options().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  *total = options().free_memory;
  *free = options().free_memory - used_bytes(chosen_device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **address, size_t bytes) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (forbidden_in_capture())
    return returned(cudaErrorStreamCaptureUnsupported);
  *address = bytes == 0 ? nullptr : allocate_device(chosen_device, bytes);
  return returned(bytes != 0 && *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void *address) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (address == nullptr)
    return cudaSuccess;
  if (forbidden_in_capture())
    return returned(cudaErrorStreamCaptureUnsupported);
  finish_everything();
  return returned(free_device(address) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (forbidden_in_capture())
    return returned(cudaErrorStreamCaptureUnsupported);
  *address = allocate_pinned(bytes);
  return returned(*address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaMallocHost(void **address, size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *address) {
  if (address == nullptr)
    return cudaSuccess;
  finish_everything();
  return returned(free_pinned(address) ? cudaSuccess : cudaErrorInvalidValue);
}

// ---- copies

// Memory that is not pinned is read before the call returns; pinned memory is read
// when the copy runs, and must still hold what it held when it was queued.
static cudaError_t queue_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                              cudaStream_t handle) {
  kind = resolved(kind, to, from);
  const operation_name name = copy_name(kind, bytes);
  CUstream_st *stream = find_stream(handle);
  const bool capturing = stream != nullptr && stream->capture != nullptr;
  if (!options().late || capturing || !is_host(kind, true))
    return queue(handle, name, [=] { copy(to, from, bytes, kind); });
  if (is_pinned(from, bytes))
    return queue(handle, name, [=, sum = checksum(from, bytes)] {
      if (checksum(from, bytes) != sum)
        fail(current_operation(), "the host changed the source before the copy ran: a wait "
                                  "(cudaEventSynchronize) is missing");
      copy(to, from, bytes, kind);
    });
  const char *first = static_cast<const char *>(from);
  auto held = std::make_shared<std::vector<char>>(first, first + bytes);
  return queue(handle, name, [=] { copy(to, held->data(), bytes, kind); });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (bytes == 0)
    return cudaSuccess;
  if (to == nullptr || from == nullptr)
    return returned(cudaErrorInvalidValue);
  if (kind != cudaMemcpyDefault && wrong_direction(to, from, kind))
    return returned(cudaErrorInvalidValue);
  const cudaError_t status = queue_copy(to, from, bytes, kind, stream);
  // Into memory that is not pinned the copy is done when the call returns.
  const CUstream_st *queued_on = find_stream(stream);
  if (status == cudaSuccess && !is_device(to) && !is_pinned(to, bytes) &&
      queued_on->capture == nullptr)
    finish_stream(stream);
  return returned(status);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  if (forbidden_in_capture())
    return returned(cudaErrorStreamCaptureImplicit);
  const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  if (status == cudaSuccess)
    finish_stream(static_cast<cudaStream_t>(nullptr));
  return status;
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (bytes == 0)
    return cudaSuccess;
  return returned(queue(stream, {"fill", nullptr, bytes}, [=] {
    write_range(address, bytes, "the destination");
    std::memset(address, value, bytes);
  }));
}

cudaError_t cudaMemset(void *address, int value, size_t bytes) {
  if (forbidden_in_capture())
    return returned(cudaErrorStreamCaptureImplicit);
  return cudaMemsetAsync(address, value, bytes, nullptr);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
  if (function == nullptr)
    return returned(cudaErrorInvalidDeviceFunction);
  if (options().capability_major < oldest_capability)
    return returned(cudaErrorNoKernelImageForDevice);
  *attributes = {};
  attributes->maxThreadsPerBlock = block_threads;
  attributes->numRegs = 32;
  attributes->binaryVersion = options().capability_major * 10 + options().capability_minor;
  attributes->ptxVersion = attributes->binaryVersion;
  return cudaSuccess;
}
}

// ---- launches

namespace trainc::stand_in {

cudaError_t queue_kernel(const cudaLaunchConfig_t &configuration, kernel_call call) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  const dim3 grid = configuration.gridDim, block = configuration.blockDim;
  constexpr uint64_t most_x = 0x7fffffff, most_y = 65535;
  if (grid.x == 0 || grid.x > most_x || grid.y == 0 || grid.y > most_y || block.x == 0 ||
      block.x > block_threads || call.function == nullptr)
    return returned(cudaErrorInvalidConfiguration);
  if (grid.z != 1 || block.y != 1 || block.z != 1 || configuration.dynamicSmemBytes != 0 ||
      configuration.numAttrs != 0)
    fail("kernel " + function_name(call.function),
         "the stand-in has blocks along x, grids along x and y, no dynamic shared memory and no "
         "launch attributes");
  const void *function = call.function;
  return returned(queue(configuration.stream, {"", function},
                        [=, call = std::move(call)] { run_kernel(call, grid, block); }));
}

} // namespace trainc::stand_in
