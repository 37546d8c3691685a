// SPDX-License-Identifier: Apache-2.0
//
// The rate of copies on the stand-in.
#include "runtime/cuda/copy_rate.h"
#include "runtime/cuda/errors.h"
#include "runtime/cuda/streams.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

TEST(CopyRate, IsThatOfTheMemory) {
  const streams streams;
  void *memory = nullptr;
  constexpr int64_t bytes = 512 << 20;
  check_cuda(cudaMalloc(&memory, bytes), "allocation");
  EXPECT_GT(measure_copy_rate(static_cast<char *>(memory), bytes), 1e8);
  EXPECT_EQ(measure_copy_rate(static_cast<char *>(memory), bytes - 512), 0); // that of a cache
  check_cuda(cudaFree(memory), "a test");
}

} // namespace
} // namespace trainc
