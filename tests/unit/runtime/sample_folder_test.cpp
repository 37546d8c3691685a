// SPDX-License-Identifier: Apache-2.0
//
// Samples of text: on the disk before they have their names, and no other file is touched.
#include "runtime/run/sample_folder.h"
#include "tests/unit/file_faults.h"
#include "tests/unit/scratch_folder.h"

#include <gtest/gtest.h>
#include <set>

namespace trainc {
namespace {

std::set<std::string> names_in(const std::string &path) {
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(path))
    names.insert(entry.path().filename());
  return names;
}

TEST(SampleFolder, IsSyncedBeforeAndAfterItGetsItsName) {
  scratch_folder run;
  recording_operations files;
  sample_folder samples(run.path(), files);
  ASSERT_EQ(samples.make(), 0);
  files.calls.clear();
  EXPECT_FALSE(samples.has(8));
  ASSERT_EQ(samples.write(8, "text\n"), 0);
  EXPECT_TRUE(samples.has(8));
  EXPECT_EQ(read_bytes(run / "samples/step-00000008.txt"), "text\n");
  const std::string name = "step-00000008.txt", unfinished = ".writing-" + name;
  EXPECT_EQ(files.calls, (std::vector<std::string>{
                             "create " + unfinished, "write " + unfinished, "fsync " + unfinished,
                             "close " + unfinished, "rename " + unfinished + " " + name,
                             "open samples", "fsync samples", "close samples"}));
}

TEST(SampleFolder, AFaultLeavesTheOldOne) {
  for (int failing = 0; failing < 5; ++failing) { // the last is the rename
    scratch_folder run;
    faulty_operations files;
    sample_folder samples(run.path(), files);
    ASSERT_EQ(samples.make(), 0);
    ASSERT_EQ(samples.write(8, "old"), 0);
    files.calls = 0;
    files.failing = failing;
    EXPECT_EQ(samples.write(8, "new"), -1);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(read_bytes(run / "samples/step-00000008.txt"), "old");
    EXPECT_EQ(names_in(run / "samples"), std::set<std::string>{"step-00000008.txt"}) << failing;
  }
}

TEST(SampleFolder, RemovesWhatItWroteAlone) {
  scratch_folder run;
  sample_folder samples(run.path());
  EXPECT_EQ(samples.remove_behind(4), 0); // there is no such folder
  ASSERT_EQ(samples.make(), 0);
  const std::set<std::string> of_users = {
      "notes.txt",          "step-5.txt",         "step-+5.txt",
      "step-0000000x.txt",  "step--0000005.txt",  "step-000000005.txt",
      "step-00000005.text", "step-00000005.txt~", "step-99999999999999999999.txt"};
  for (const std::string &name : of_users)
    run.write("samples/" + name, "mine");
  for (const int64_t step : {4, 5, 123456789})
    ASSERT_EQ(samples.write(step, "text"), 0);
  run.write("samples/.writing-step-00000003.txt", "te");
  std::set<std::string> left = of_users;
  left.insert("step-00000004.txt");
  EXPECT_EQ(samples.remove_behind(4), 0);
  EXPECT_EQ(names_in(samples.path()), left);
  EXPECT_EQ(samples.remove_behind(-1), 0);
  EXPECT_EQ(names_in(samples.path()), of_users);
}

} // namespace
} // namespace trainc
