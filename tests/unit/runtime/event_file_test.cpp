// SPDX-License-Identifier: Apache-2.0
//
// Event files for TensorBoard: their bytes are those that its own writers give, and what a kill or
// a resumed run leaves of them is cut so that each step is there once.
#include "runtime/failure.h"
#include "runtime/observe/event_file.h"
#include "tests/unit/file_faults.h"
#include "tests/unit/scratch_folder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>

namespace trainc {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    text += format_text("%02x", static_cast<unsigned char>(byte));
  return text;
}

// As TensorBoard's own writer has it.
TEST(EventRecord, MasksItsChecksum) {
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8u);
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u);
  EXPECT_EQ(masked_crc32c(std::string(32, '\0')), 0x0fd7fffau);
}

TEST(EventRecord, HasTheBytesOfTensorBoard) {
  event_record record(4096);
  record.begin_file(1.5);
  EXPECT_EQ(hex_of(record.finish()),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  record.begin_steps(1.5, 8);
  EXPECT_EQ(hex_of(record.finish()),
            "0f000000000000006d532b0909000000000000f83f10083a0208019571c7d1");
  record.begin(2, 300);
  record.scalar("a", 0.5);
  record.scalar("b", -INFINITY);
  EXPECT_EQ(hex_of(record.finish()), "220000000000000078113dfd09000000000000004010ac022a140a080a016"
                                     "1150000003f0a080a016215000080ff7229d9e6");
  std::string repeated; // more than a byte says the length of
  for (int i = 0; i < 200; ++i)
    repeated += "78";
  record.begin(2, 7);
  record.text("t", std::string(200, 'x'));
  EXPECT_EQ(hex_of(record.finish()),
            "ee00000000000000c7a7fb8f09000000000000004010072ae0010add010a017442cd01080742c801" +
                repeated + "4a080a060a047465787426ca4235");
  const std::pair<std::string, std::string> values[] = {{"kind", "adamw"}, {"rate", "0.25"}};
  record.begin(2, 0);
  record.hyperparameters(values);
  EXPECT_EQ(hex_of(record.finish()),
            "6800000000000000fe9c7ad40900000000000000402a5d0a5b0a1c5f68706172616d735f2f73657373696f"
            "6e5f73746172745f696e666f42060801120212004a330a310a0768706172616d7312261a240a0f0a046b69"
            "6e6412071a056164616d770a110a0472617465120911000000000000d03f617c9da3");
}

TEST(EventRecord, ReplacesWhatIsNotUtf8) {
  auto shown = [](std::string_view text) {
    event_record record(64);
    record.begin(0, 0);
    record.text("t", text);
    return std::string(record.finish());
  };
  auto has = [&](std::string_view text, const std::string &expected) {
    const std::string field = format_text("\x42%c", static_cast<char>(expected.size())) + expected;
    EXPECT_NE(shown(text).find(field), std::string::npos) << hex_of(text);
  };
  const std::string other = "\uFFFD";
  for (const char *sound : {"a", "\u00e4", "\u0800\uFFFF", "\U00010000\U0010FFFF", "\uD7FF"})
    has(sound, sound);
  has("a\xff"
      "b",
      "a" + other + "b");
  has("\xc3", other);                                     // ends too early
  has("\xc0\xaf", other + other);                         // a form that is too long
  has("\xe0\x9f\xbf", other + other + other);             // likewise
  has("\xed\xa0\x80", other + other + other);             // a surrogate
  has("\xf4\x90\x80\x80", other + other + other + other); // above the last character
}

void put_step(event_file &file, int64_t step, const char *tag = "train/loss") {
  file.record().begin(wall_seconds(), step);
  file.record().scalar(tag, 1);
  file.write();
}

using texts = std::vector<std::string>;

texts names_in(const std::string &folder) {
  texts names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// What is written a second time to the same folder is cut in the same way.
TEST(EventFile, IsCutAfterAStep) {
  scratch_folder run;
  const std::string folder = run / "tensorboard";
  EXPECT_EQ(cut_events(folder, 3), texts()); // there is no such folder
  int64_t bytes_to_3 = 0;
  std::string path;
  {
    event_file file(folder, 512);
    path = file.path();
    for (const int64_t step : {1, 2, 3, 4}) {
      put_step(file, step);
      if (step == 3)
        put_step(file, step, "held_out/loss");
      if (step == 3)
        bytes_to_3 = static_cast<int64_t>(std::filesystem::file_size(path));
    }
  }
  event_file second(folder, 512);
  second.record().begin_steps(0, 5);
  second.write();
  EXPECT_LT(path, second.path());
  EXPECT_EQ(names_in(folder).size(), 2u);
  EXPECT_EQ(cut_events(folder, 3), (texts{"train/loss", "held_out/loss"}));
  EXPECT_EQ(names_in(folder), texts{std::filesystem::path(path).filename()}); // the other had none
  EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(path)), bytes_to_3);
  EXPECT_EQ(cut_events(folder, 2), texts{"train/loss"});
  EXPECT_EQ(cut_events(folder, -1), texts());
  EXPECT_EQ(names_in(folder), texts());
}

TEST(EventFile, IsCutBeforeWhatIsDamaged) {
  scratch_folder run;
  const std::string folder = run / "tensorboard";
  std::string path, first;
  {
    event_file file(folder, 512);
    path = file.path();
    put_step(file, 1);
    first = read_bytes(path);
    put_step(file, 2);
  }
  const std::string whole = read_bytes(path);
  const std::string name = "tensorboard/" + std::filesystem::path(path).filename().string();
  for (size_t size = first.size(); size < whole.size(); ++size) {
    run.write(name, whole.substr(0, size));
    EXPECT_EQ(cut_events(folder, 9), texts());
    EXPECT_EQ(read_bytes(path), first) << size;
    std::string changed = whole; // a bit of the last record
    changed[size] ^= 4;
    run.write(name, changed);
    EXPECT_EQ(cut_events(folder, 9), texts());
    EXPECT_EQ(read_bytes(path), first) << size;
  }
  for (size_t zeros : {1, 12, 16, 5000}) { // as a machine that went down leaves them
    run.write(name, whole + std::string(zeros, '\0'));
    EXPECT_EQ(cut_events(folder, 9), texts());
    EXPECT_EQ(read_bytes(path), whole) << zeros;
  }
}

TEST(EventFile, LeavesTheFilesOfOthers) {
  scratch_folder run;
  const texts of_users = {"events.out.tfevents.1700000000.host.1.v2",
                          "events.out.tfevents.17.trainc", "events.out.tfevents.1700000000.trainc~",
                          "notes.txt"};
  std::filesystem::create_directory(run / "tensorboard");
  for (const std::string &name : of_users)
    run.write("tensorboard/" + name, "mine");
  run.write("tensorboard/events.out.tfevents.9000000000.trainc", "a clock that was put back");
  { event_file later(run / "tensorboard", 512); }
  EXPECT_EQ(event_files_in(run / "tensorboard"),
            (texts{run / "tensorboard/events.out.tfevents.9000000000.trainc",
                   run / "tensorboard/events.out.tfevents.9000000001.trainc"}));
  cut_events(run / "tensorboard", -1);
  texts left = of_users;
  std::sort(left.begin(), left.end());
  EXPECT_EQ(names_in(run / "tensorboard"), left);
}

TEST(EventFile, SaysWhatCannotBeDone) {
  scratch_folder run;
  run.write("tensorboard", "a file in its place");
  EXPECT_THROW(event_file(run / "tensorboard", 512), failure);
  std::filesystem::remove(run / "tensorboard");
  for (int failing = 0; failing < 2; ++failing) {
    faulty_operations files;
    files.failing = failing;
    EXPECT_THROW(event_file(run / "tensorboard", 512, files), failure) << failing;
  }
  event_file file(run / "tensorboard", 512);
  faulty_operations files;
  files.failing = 0;
  EXPECT_THROW(cut_events(run / "tensorboard", -1, files), failure);
  EXPECT_EQ(file.error(), 0);
  std::filesystem::remove(file.path());
  put_step(file, 1);
  EXPECT_EQ(file.error(), 0); // as long as nobody looks
  file.look();
  EXPECT_EQ(file.error(), ENOENT);
}

} // namespace
} // namespace trainc
