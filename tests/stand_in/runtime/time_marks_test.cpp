// SPDX-License-Identifier: Apache-2.0
//
// Times of queued work on the stand-in.
#include "runtime/cuda/streams.h"
#include "runtime/process/clock.h"
#include "tests/stand_in/runtime/device_copy.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

TEST(TimeMarks, FollowTheQueuedWork) {
  const streams streams;
  time_marks marks;
  device_copy<char> from(std::vector<char>(64 << 20, 1)), to(std::vector<char>(64 << 20));
  for (int round = 0; round < 2; ++round) { // marks are used anew
    const double before = seconds_now();
    marks.record(0);
    marks.record(1);
    check_cuda(cudaMemcpyAsync(to.data(), from.data(), 64 << 20, cudaMemcpyDeviceToDevice,
                               streams.compute),
               "copy");
    marks.record(2);
    check_cuda(cudaStreamSynchronize(streams.compute), "a test");
    EXPECT_LE(before, marks.seconds(0));
    EXPECT_LE(marks.seconds(0), marks.seconds(1));
    EXPECT_LT(marks.seconds(1), marks.seconds(2));
    EXPECT_LT(marks.seconds(2), seconds_now() + 1e-3);
  }
}

} // namespace
} // namespace trainc
