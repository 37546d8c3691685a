// SPDX-License-Identifier: Apache-2.0
//
// Results of commands: on the disk before they get their names, and all of them or none.
#include "runtime/failure.h"
#include "runtime/files/output_file.h"
#include "tests/unit/file_faults.h"
#include "tests/unit/scratch_folder.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace trainc {
namespace {

std::string name_of(const scratch_folder &folder) {
  return std::filesystem::path(folder.path()).filename();
}

TEST(FileOperations, TheExistingPartIsAboveWhatCannotBeLookedAt) {
  scratch_folder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_EQ(existing_part(folder / "loop/run"), folder.path());
}

// A configuration, a log that is cut, what commands write.
TEST(OutputFile, IsSyncedBeforeAndAfterItGetsItsName) {
  scratch_folder folder;
  recording_operations files;
  {
    output_file file(folder / "result", files);
    file.write("text", 4);
    file.publish();
  }
  std::string parent = name_of(folder);
  EXPECT_EQ(files.calls, (std::vector<std::string>{"create result.writing", "write result.writing",
                                                   "fsync result.writing", "close result.writing",
                                                   "rename result.writing result", "open " + parent,
                                                   "fsync " + parent, "close " + parent}));
}

// Two results of one command.
void write_both(const scratch_folder &folder, file_operations &files) {
  output_file first(folder / "first", files), second(folder / "second", files);
  first.write("new", 3);
  second.write("new", 3);
  publish_together({&first, &second});
}

TEST(OutputFile, AllAreDurableBeforeOneGetsItsName) {
  scratch_folder folder;
  recording_operations files;
  write_both(folder, files);
  std::string parent = name_of(folder);
  EXPECT_EQ(files.calls, (std::vector<std::string>{
                             "create first.writing", "create second.writing", "write first.writing",
                             "write second.writing", "fsync first.writing", "close first.writing",
                             "fsync second.writing", "close second.writing",
                             "rename first.writing first", "rename second.writing second",
                             "open " + parent, "fsync " + parent, "close " + parent}));
}

TEST(OutputFile, WhatFailsBeforeTheNamesChangesNoneOfSeveral) {
  for (int failing = 0; failing < 9; ++failing) { // the last is the first rename
    scratch_folder folder;
    folder.write("first", "old");
    folder.write("second", "old");
    faulty_operations files;
    files.failing = failing;
    files.error = ENOSPC;
    EXPECT_THROW(write_both(folder, files), failure) << failing;
    for (const char *name : {"first", "second"}) {
      EXPECT_EQ(read_bytes(folder / name), "old") << failing;
      EXPECT_FALSE(std::filesystem::exists(folder / name + ".writing")) << failing;
    }
  }
}

// What a signal does, between two names.
class ending_operations : public file_operations {
public:
  int rename(const char *from, const char *to) override {
    int result = file_operations::rename(from, to);
    if (!end_.joinable())
      end_ = std::thread([] {
        remove_unfinished_files();
        _exit(7);
      });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return result;
  }

private:
  std::thread end_;
};

TEST(OutputFileDeathTest, NoSignalEndsTheProcessBetweenTwoNames) {
  scratch_folder folder;
  EXPECT_EXIT(
      {
        ending_operations files;
        write_both(folder, files);
        pause();
      },
      testing::ExitedWithCode(7), "");
  for (const char *name : {"first", "second"}) {
    EXPECT_EQ(read_bytes(folder / name), "new");
    EXPECT_FALSE(std::filesystem::exists(folder / name + ".writing"));
  }
}

} // namespace
} // namespace trainc
