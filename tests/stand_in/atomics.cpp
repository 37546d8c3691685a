// SPDX-License-Identifier: Apache-2.0
//
// Atomic operations of kernels. One thread runs at a time, so each is plain code that
// has told the checker what it does.
#include "cuda_runtime.h"

#include <algorithm>

namespace {

// Inlined, so that the address it returns to is the kernel's.
template <typename T, typename Operation>
inline __attribute__((always_inline)) T update(T *address, Operation operation) {
  trainc::stand_in::atomic_access(address, sizeof(T), __builtin_return_address(0));
  const T old = *address;
  *address = operation(old);
  return old;
}

} // namespace

int atomicAdd(int *address, int value) {
  // In unsigned arithmetic, which wraps around as a device does.
  return update(address, [=](int old) {
    return static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value));
  });
}
unsigned atomicAdd(unsigned *address, unsigned value) {
  return update(address, [=](unsigned old) { return old + value; });
}
unsigned long long atomicAdd(unsigned long long *address, unsigned long long value) {
  return update(address, [=](unsigned long long old) { return old + value; });
}
int atomicMin(int *address, int value) {
  return update(address, [=](int old) { return std::min(old, value); });
}
int atomicMax(int *address, int value) {
  return update(address, [=](int old) { return std::max(old, value); });
}
unsigned atomicMin(unsigned *address, unsigned value) {
  return update(address, [=](unsigned old) { return std::min(old, value); });
}
unsigned atomicMax(unsigned *address, unsigned value) {
  return update(address, [=](unsigned old) { return std::max(old, value); });
}
unsigned atomicOr(unsigned *address, unsigned value) {
  return update(address, [=](unsigned old) { return old | value; });
}
unsigned atomicAnd(unsigned *address, unsigned value) {
  return update(address, [=](unsigned old) { return old & value; });
}
int atomicExch(int *address, int value) {
  return update(address, [=](int) { return value; });
}
unsigned atomicExch(unsigned *address, unsigned value) {
  return update(address, [=](unsigned) { return value; });
}
int atomicCAS(int *address, int compare, int value) {
  return update(address, [=](int old) { return old == compare ? value : old; });
}
unsigned atomicCAS(unsigned *address, unsigned compare, unsigned value) {
  return update(address, [=](unsigned old) { return old == compare ? value : old; });
}
