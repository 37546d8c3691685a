// SPDX-License-Identifier: Apache-2.0
//
// Addresses that get memory in pages: those without any are not device memory.
#include "test_kernels.h"

#include <cuda.h>

namespace trainc::stand_in {
namespace {

constexpr size_t page = 4096;

class Mapping : public ::testing::Test {
protected:
  void SetUp() override {
    set_options("pages=4096");
    ASSERT_EQ(cuMemAddressReserve(&base, 4 * page, 0, 0, 0), CUDA_SUCCESS);
    for (const size_t number : {0, 2, 3})
      map(number);
  }
  void TearDown() override {
    EXPECT_NE(cuMemAddressFree(base, 4 * page), CUDA_SUCCESS) << "which have memory";
    for (const size_t number : {0, 2, 3})
      EXPECT_EQ(cuMemUnmap(base + number * page, page), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAddressFree(base, 4 * page), CUDA_SUCCESS);
    set_options("");
  }
  void map(size_t number) {
    CUmemAllocationProp kind = {};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory = 0;
    ASSERT_EQ(cuMemCreate(&memory, page, &kind, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemMap(base + number * page, page, 0, memory, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemRelease(memory), CUDA_SUCCESS);
    ASSERT_EQ(cuMemSetAccess(base + number * page, page, &access, 1), CUDA_SUCCESS);
  }
  cudaError_t clear(size_t first, size_t bytes) {
    return cudaMemset(reinterpret_cast<void *>(base + first), 0, bytes);
  }
  CUdeviceptr base = 0;
};

TEST_F(Mapping, NeighboursAreOne) {
  EXPECT_EQ(clear(0, page), cudaSuccess);
  EXPECT_EQ(clear(2 * page + 100, page), cudaSuccess);
}

TEST_F(Mapping, NothingElseHasMemory) {
  for (const size_t first : {page, 2 * page - 4, page - 4, 4 * page - 4})
    EXPECT_EXIT((void)clear(first, 8), ::testing::ExitedWithCode(70),
                "reaches outside device memory")
        << first;
}

TEST_F(Mapping, WholePagesAlone) {
  CUdeviceptr other = 0;
  EXPECT_NE(cuMemAddressReserve(&other, page + 1, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_NE(cuMemMap(base, page, 0, 12345, 0), CUDA_SUCCESS) << "no memory of that number";
}

} // namespace
} // namespace trainc::stand_in
