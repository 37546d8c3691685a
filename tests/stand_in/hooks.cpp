// SPDX-License-Identifier: Apache-2.0
//
// What GCC's -fsanitize=thread calls at every load and store of the code it compiles.
// That library's own functions are not linked: these are in their place, and look at
// what a kernel does. Host code of the same file passes through them too.
#include "executor.h"
#include "memory.h"
#include "operations.h"
#include "report.h"
#include "shadow.h"
#include "shared_memory.h"

#include <link.h>

namespace trainc::stand_in {

namespace {

bool covers(const argument_extent &extent, const char *address, size_t bytes, bool write) {
  return (extent.writable || !write) && address >= extent.data &&
         address + bytes <= extent.data + extent.bytes;
}

// A place in the code mostly stays with one argument: the last that fit is tried first.
constexpr size_t remembered = 256;
uint32_t last_extent[remembered];

[[noreturn]] void outside_extents(const char *address, size_t bytes, bool write, const void *code);

template <access_kind Kind>
inline void check_extent(const char *address, size_t bytes, const void *code) {
  constexpr bool write = Kind != access_kind::read;
  const auto &extents = launch.call->extents;
  uint32_t &last = last_extent[reinterpret_cast<uintptr_t>(code) / 4 % remembered];
  if (last < extents.size() && covers(extents[last], address, bytes, write)) [[likely]]
    return;
  for (uint32_t i = 0; i < extents.size(); ++i)
    if (covers(extents[i], address, bytes, write)) {
      last = i;
      return;
    }
  if ((write ? launch.any_write : launch.any_read) && is_allocated(address, bytes))
    return;
  outside_extents(address, bytes, write, code);
}

const char *verb(access_kind kind) {
  return kind == access_kind::read ? "reads" : kind == access_kind::write ? "writes" : "updates";
}

std::string bytes_text(size_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

// "element 128 of argument 2, which has 128".
std::string within(const argument_extent &extent, const char *address) {
  const int64_t distance = address - extent.data;
  const int64_t element = distance >= 0
                              ? distance / extent.element_bytes
                              : (distance - extent.element_bytes + 1) / extent.element_bytes;
  std::string text =
      "element " + std::to_string(element) + " of argument " + std::to_string(extent.argument);
  if (distance % extent.element_bytes != 0)
    text += " (byte " + std::to_string(distance) + ")";
  if (extent.bytes >= 0)
    text += ", which has " + std::to_string(extent.bytes / extent.element_bytes);
  return text;
}

// The argument whose extent is nearest, null where the launch gave none.
const argument_extent *nearest(const char *address) {
  const argument_extent *best = nullptr;
  int64_t best_distance = 0;
  for (const argument_extent &extent : launch.call->extents) {
    if (extent.bytes < 0)
      continue;
    const char *end = extent.data + extent.bytes;
    const int64_t distance = address < extent.data ? extent.data - address
                             : address >= end      ? address - end
                                                   : -1;
    if (best == nullptr || distance < best_distance) {
      best = &extent;
      best_distance = distance;
    }
  }
  return best;
}

std::string describe(const region &where, size_t offset) {
  const char *address = reinterpret_cast<const char *>(where.base + offset);
  if (&where == &shared_region)
    return describe_shared(offset);
  if (in_kernel)
    if (const argument_extent *extent = nearest(address))
      return within(*extent, address);
  return describe_device(address);
}

void outside_extents(const char *address, size_t bytes, bool write, const void *code) {
  checking = false;
  const std::string start = running_thread() + source_line(code);
  const std::string does = std::string(write ? "writes " : "reads ") + bytes_text(bytes);
  const argument_extent *extent = nearest(address);
  if (extent == nullptr)
    fail(start, does + " outside device memory: " + describe_device(address));
  if (covers(*extent, address, bytes, false))
    fail(start, does + " at " + within(*extent, address) + " and may only be read");
  fail(start, does + " out of bounds: " + within(*extent, address));
}

// Constants of the program itself, which the device would have too.
bool is_program_memory(uintptr_t address) {
  struct search {
    uintptr_t address;
    bool found = false;
  } wanted = {address};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        auto *search_for = static_cast<search *>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto &header = info->dlpi_phdr[i];
          search_for->found |=
              header.p_type == PT_LOAD &&
              search_for->address - (info->dlpi_addr + header.p_vaddr) < header.p_memsz;
        }
        return 1; // the program comes first, nothing else is asked
      },
      &wanted);
  return wanted.found;
}

[[noreturn]] void outside_arrays(size_t offset, size_t bytes, access_kind kind, const void *code) {
  checking = false;
  fail(running_thread() + source_line(code), std::string(verb(kind)) + " " + bytes_text(bytes) +
                                                 " out of bounds: " + describe_shared(offset));
}

void other_access(uintptr_t address, size_t bytes, access_kind kind, const void *code) {
  if (address - launch.arguments < launch.argument_bytes)
    return;
  if (kind == access_kind::read && is_program_memory(address))
    return;
  checking = false;
  fail(running_thread() + source_line(code),
       std::string(verb(kind)) + " " + bytes_text(bytes) + " outside device memory");
}

template <access_kind Kind>
inline void on_access(const void *pointer, size_t bytes, const void *code) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (!checking || address - stacks_begin < stacks_bytes)
    return;
  const size_t offset = address - device_region.base, in_shared = address - shared_region.base;
  if (offset < device_region.size) [[likely]] {
    check_extent<Kind>(static_cast<const char *>(pointer), bytes, code);
    check_memory<Kind, false>(device_region, offset, bytes, code);
  } else if (in_shared < shared_region.size) {
    if (!is_own_array(in_shared, bytes)) [[unlikely]]
      outside_arrays(in_shared, bytes, Kind, code);
    check_memory<Kind, true>(shared_region, in_shared, bytes, code);
  } else
    other_access(address, bytes, Kind, code);
}

[[noreturn]] void misaligned(const void *address, unsigned bytes, const void *code) {
  checking = false;
  if (!in_kernel)
    fail("host code", "misaligned access of " + bytes_text(bytes));
  const size_t offset = reinterpret_cast<uintptr_t>(address) - device_region.base;
  const size_t in_shared = reinterpret_cast<uintptr_t>(address) - shared_region.base;
  fail(running_thread() + source_line(code),
       "misaligned access of " + bytes_text(bytes) + " at " +
           (offset < device_region.size      ? describe(device_region, offset)
            : in_shared < shared_region.size ? describe(shared_region, in_shared)
                                             : "a local variable") +
           ": the address is " + std::to_string(reinterpret_cast<uintptr_t>(address) % bytes) +
           " more than a multiple of " + std::to_string(bytes));
}

template <access_kind Kind, size_t Bytes>
inline void on_aligned_access(const void *pointer, const void *code) {
  if (checking && reinterpret_cast<uintptr_t>(pointer) % Bytes != 0) [[unlikely]]
    misaligned(pointer, Bytes, code);
  on_access<Kind>(pointer, Bytes, code);
}

} // namespace

void misaligned_vector(const void *address, unsigned bytes) {
  misaligned(address, bytes, __builtin_return_address(0));
}

void atomic_access(const void *address, unsigned bytes, const void *code) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0)
    misaligned(address, bytes, code);
  on_access<access_kind::atomic>(address, bytes, code);
}

void report_access(const region &where, size_t offset, size_t size, access_kind kind, problem what,
                   stamp other, bool other_wrote, const void *code) {
  checking = false;
  const std::string subject =
      in_kernel ? running_thread() + source_line(code) : current_operation();
  const std::string place = describe(where, offset);
  const std::string does = std::string(verb(kind)) + " " + bytes_text(size);
  if (what == problem::never_written)
    fail(subject, does + " never written: " + place);
  const std::string did = other_wrote ? " wrote" : " read";
  if (clock_of(other) >= current.operation_start)
    fail(subject, "race: " + does + " that " + thread_at(clock_of(other), thread_of(other)) + did +
                      " with no barrier between: " + place);
  fail(subject,
       "race" + (in_kernel ? " of " + current_operation() : "") + ": " + does + " that " +
           operation_at(clock_of(other)) + did +
           ", and nothing orders the two: a wait (cudaStreamWaitEvent) is missing: " + place);
}

} // namespace trainc::stand_in

using namespace trainc::stand_in;

#define TRAINC_CODE __builtin_return_address(0)
#define TRAINC_HOOKS(bytes)                                                                        \
  void __tsan_read##bytes(void *address) {                                                         \
    on_aligned_access<access_kind::read, bytes>(address, TRAINC_CODE);                             \
  }                                                                                                \
  void __tsan_write##bytes(void *address) {                                                        \
    on_aligned_access<access_kind::write, bytes>(address, TRAINC_CODE);                            \
  }                                                                                                \
  void __tsan_unaligned_read##bytes(void *address) {                                               \
    on_access<access_kind::read>(address, bytes, TRAINC_CODE);                                     \
  }                                                                                                \
  void __tsan_unaligned_write##bytes(void *address) {                                              \
    on_access<access_kind::write>(address, bytes, TRAINC_CODE);                                    \
  }                                                                                                \
  void __tsan_volatile_read##bytes(void *address) {                                                \
    on_aligned_access<access_kind::read, bytes>(address, TRAINC_CODE);                             \
  }                                                                                                \
  void __tsan_volatile_write##bytes(void *address) {                                               \
    on_aligned_access<access_kind::write, bytes>(address, TRAINC_CODE);                            \
  }

extern "C" {

TRAINC_HOOKS(1)
TRAINC_HOOKS(2)
TRAINC_HOOKS(4)
TRAINC_HOOKS(8)
TRAINC_HOOKS(16)

void __tsan_read_range(void *address, unsigned long bytes) {
  on_access<access_kind::read>(address, bytes, TRAINC_CODE);
}
void __tsan_write_range(void *address, unsigned long bytes) {
  on_access<access_kind::write>(address, bytes, TRAINC_CODE);
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

// What the instrumentation makes of std::atomic and of the guards of static variables
// in host code of the same file. Kernels have CUDA's own functions.
#define TRAINC_ATOMIC_OPERATION(bits, type, name)                                                  \
  type __tsan_atomic##bits##_fetch_##name(volatile type *address, type value, int) {               \
    return __atomic_fetch_##name(address, value, __ATOMIC_SEQ_CST);                                \
  }
#define TRAINC_ATOMICS(bits, type)                                                                 \
  type __tsan_atomic##bits##_load(const volatile type *address, int) {                             \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type *address, type value, int) {                      \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type *address, type value, int) {                   \
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);                                  \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type *address, type *expected,        \
                                                    type value, int, int) {                        \
    return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST,          \
                                       __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type *address, type *expected,          \
                                                  type value, int, int) {                          \
    return __atomic_compare_exchange_n(address, expected, value, true, __ATOMIC_SEQ_CST,           \
                                       __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  TRAINC_ATOMIC_OPERATION(bits, type, add)                                                         \
  TRAINC_ATOMIC_OPERATION(bits, type, sub)                                                         \
  TRAINC_ATOMIC_OPERATION(bits, type, and)                                                         \
  TRAINC_ATOMIC_OPERATION(bits, type, or)                                                          \
  TRAINC_ATOMIC_OPERATION(bits, type, xor)

TRAINC_ATOMICS(8, uint8_t)
TRAINC_ATOMICS(16, uint16_t)
TRAINC_ATOMICS(32, uint32_t)
TRAINC_ATOMICS(64, uint64_t)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
}
