// SPDX-License-Identifier: Apache-2.0
//
// What a rank recorded comes to who writes it; without memory for it the steps go on.
#include "runtime/step/step_trace.h"

#include "runtime/process/clock.h"

#include <gtest/gtest.h>

namespace trainc {

extern const program trainer_program; // of toy_program.cpp

namespace {

class StepTrace : public testing::Test {
protected:
  void take_step(int64_t number) {
    const double begin = seconds_now();
    trace.training_step(number, begin, begin + 1e-3);
    trace.rest(begin, begin + 1e-3);
  }

  communicator ranks;
  step_trace trace{ranks};
  std::vector<rank_trace> seen;
  std::function<void(rank_trace)> see = [this](rank_trace of) { seen.push_back(std::move(of)); };
};

TEST_F(StepTrace, HandsOnWhatWasRecordedSinceItsStart) {
  take_step(1);
  trace.start();
  take_step(2);
  trace.make_room(1, 1);
  take_step(3);
  trace.gather(trainer_program, see);
  ASSERT_EQ(seen.size(), 1u);
  ASSERT_EQ(seen[0].slices.size(), 4u);
  EXPECT_EQ(seen[0].slices[0].number, 2);
  EXPECT_EQ(seen[0].slices[2].number, 3);
}

TEST_F(StepTrace, SaysWhatItsReaderThrows) {
  trace.start();
  auto refuse = [](rank_trace) { throw failure(exit_disk, "full"); };
  EXPECT_THROW(trace.gather(trainer_program, refuse), failure);
}

TEST_F(StepTrace, WithoutMemoryNothingIsHandedOn) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends a process that asks for so much memory";
#endif
  trace.start();
  take_step(1);
  trace.make_room(1, int64_t(1) << 42);
  take_step(2);
  try {
    trace.gather(trainer_program, see);
    FAIL();
  } catch (const failure &error) {
    EXPECT_EQ(error.code, exit_machine);
    EXPECT_EQ(error.message, "there is no memory for the trace of rank 0, of which fewer steps "
                             "take less");
  }
  EXPECT_TRUE(seen.empty());
}

} // namespace
} // namespace trainc
