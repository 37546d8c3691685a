// SPDX-License-Identifier: Apache-2.0
//
// A dump whose tensors do not fit in memory is given up, and the run goes on.
#include "runtime/step/tensor_dump.h"
#include "tests/unit/scratch_folder.h"

#include <filesystem>
#include <gtest/gtest.h>

namespace trainc {
namespace {

watched_values values_of(const std::string &name, const std::vector<int64_t> &shape,
                         const char *data) {
  return {.step = 1,
          .micro_batch = -1,
          .tensor = {name, tensor_kind::value, data_type::f32, shape},
          .data = data};
}

TEST(TensorDump, WithoutMemoryItIsGivenUpOnce) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends a process that asks for so much memory";
#endif
  scratch_folder folder;
  const std::vector<int64_t> shape = {2}, too_large = {int64_t(1) << 50};
  const float data[2] = {1, 2};
  const auto *bytes = reinterpret_cast<const char *>(data);
  statistics_taker taker(2);
  tensor_dump dump(folder.path(), 3);
  dump.take(values_of("small", shape, bytes), taker);
  dump.write(1);
  EXPECT_EQ(dump.take_problem(), "");
  EXPECT_TRUE(std::filesystem::exists(folder / "rank-3-step-00000001.safetensors"));
  dump.take(values_of("small", shape, bytes), taker);
  dump.take(values_of("large", too_large, bytes), taker);
  dump.take(values_of("large", too_large, bytes), taker);
  dump.write(2);
  EXPECT_EQ(dump.take_problem(), folder / "rank-3-step-00000001.safetensors: cannot be written: "
                                          "there is no memory to hold the tensors");
  EXPECT_EQ(dump.take_problem(), "");
  EXPECT_FALSE(std::filesystem::exists(folder / "rank-3-step-00000002.safetensors"));
}

} // namespace
} // namespace trainc
