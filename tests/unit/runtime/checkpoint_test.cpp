// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints: what is written is read back; every damage is found; and whatever
// call fails, or wherever the process is killed, the newest complete checkpoint
// loads and nothing is left behind for good.
#include "runtime/arena.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/host_access.h"
#include "runtime/process/signs_of_life.h"
#include "runtime/random.h"
#include "runtime/run/run_choice.h"
#include "runtime/run/run_folder.h"
#include "runtime/run/step_log.h"
#include "tests/unit/file_faults.h"
#include "tests/unit/scratch_folder.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>

namespace trainc {

extern const program trainer_program; // of toy_program.cpp

namespace {

class CheckpointTest : public testing::Test {
protected:
  CheckpointTest() {
    for (arena_kind kind : {arena_kind::parameters, arena_kind::optimizer_state})
      memory.allocate(kind, trainer_program.arena_bytes[static_cast<int>(kind)]);
  }
  // Other bytes for every seed; an odd factor makes neighbours differ too. All are finite numbers.
  void fill(uint64_t seed) {
    uint64_t word = seed;
    for (const tensor_view &tensor : tensors())
      for (int64_t i = 0; i < tensor.bytes; i += 4) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        auto bits = static_cast<uint32_t>(word >> 32) & 0xbfffffffu;
        memcpy(tensor.data + i, &bits, 4);
      }
  }
  bool holds(uint64_t seed) {
    std::string now = bytes();
    fill(seed);
    return now == bytes();
  }
  std::string bytes() {
    std::string all;
    for (const tensor_view &tensor : tensors())
      all.append(tensor.data, static_cast<size_t>(tensor.bytes));
    return all;
  }
  std::vector<tensor_view> tensors() { return state_tensors(trainer_program, memory.places); }
  std::unique_ptr<checkpoint_writer> writer(file_operations &files, int64_t keep = 2,
                                            bool background = false) {
    keep_policy policy;
    policy.newest = keep;
    auto saver = std::make_unique<checkpoint_writer>(trainer_program, memory.places, access, ranks,
                                                     folder_groups(ranks), files, folder.path(),
                                                     policy, sample_order{17, 8, 3}, background);
    saver->open();
    return saver;
  }
  // As a run does that finds the next step finite.
  static int save(checkpoint_writer &saver, int64_t step) {
    int error = saver.save({step, 4 * step, 0}).error;
    saver.prune();
    return error;
  }
  checkpoint_info newest() {
    warnings.clear();
    checkpoint_info info = find_checkpoint("latest", folder.path(), trainer_program,
                                           [&](std::string text) { warnings += text + "\n"; });
    if (!info.path.empty())
      load_tensors(info, tensors(), access);
    return info;
  }
  std::vector<std::string> names() {
    std::vector<std::string> result;
    for (auto &entry : std::filesystem::directory_iterator(folder.path()))
      result.push_back(entry.path().filename());
    std::sort(result.begin(), result.end());
    return result;
  }

  scratch_folder folder;
  communicator ranks;
  arena_set memory;
  host_access access;
  std::string warnings;
};

TEST_F(CheckpointTest, RoundTripAndPruning) {
  auto saver = writer(real_file_operations());
  for (int64_t step : {1, 2, 3}) {
    fill(static_cast<uint64_t>(step));
    EXPECT_EQ(save(*saver, step), 0);
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000002", "step-00000003"}));
  fill(99);
  checkpoint_info info = newest();
  EXPECT_TRUE(holds(3));
  EXPECT_EQ(info.step, 3);
  EXPECT_EQ(info.batches_taken, 12);
  EXPECT_EQ(info.order.seed, 17u);
  EXPECT_EQ(info.order.samples_per_batch, 8);
  EXPECT_EQ(info.order.number, 3);
  EXPECT_EQ(warnings, "");
}

TEST_F(CheckpointTest, TheSameStepIsReplaced) {
  {
    auto saver = writer(real_file_operations());
    fill(1);
    EXPECT_EQ(save(*saver, 5), 0);
  }
  auto saver = writer(real_file_operations());
  fill(2);
  EXPECT_EQ(save(*saver, 5), 0);
  EXPECT_EQ(newest().step, 5);
  EXPECT_TRUE(holds(2));
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000005"}));
}

TEST_F(CheckpointTest, NewestIsTheOneWrittenLast) {
  {
    auto saver = writer(real_file_operations(), 5);
    for (int64_t step : {10, 20, 30}) {
      fill(static_cast<uint64_t>(step));
      save(*saver, step);
    }
  }
  auto saver = writer(real_file_operations(), 5); // goes on from step 10 in another way
  fill(77);
  save(*saver, 15);
  EXPECT_EQ(newest().step, 15);
}

// Resuming from it would fail at the next step, and at every try.
TEST_F(CheckpointTest, WhatIsNotFiniteIsNotWritten) {
  auto saver = writer(real_file_operations(), 1);
  fill(1);
  EXPECT_EQ(save(*saver, 1), 0);
  auto set = [&](const char *name, float value) {
    for (const tensor_view &tensor : tensors())
      if (tensor.name == name)
        memcpy(tensor.data + tensor.bytes - 4, &value, 4);
  };
  struct damage {
    const char *tensor;
    float value;
  };
  for (auto [tensor, value] :
       {damage{"table", INFINITY}, damage{"bias", NAN}, damage{"bias", -INFINITY},
        damage{"optimizer/momentum_buffer/table", NAN}}) {
    fill(2);
    set(tensor, value);
    save_result result = saver->save({2, 0, 0});
    saver->prune();
    EXPECT_EQ(result.error, save_result::not_finite) << tensor << value;
    std::string text = save_problem(result, folder.path(), 2);
    EXPECT_NE(text.find(std::string("'") + tensor + "' is not finite"), std::string::npos) << text;
    EXPECT_EQ(newest().step, 1);
    EXPECT_TRUE(holds(1));
  }
  fill(3); // what is not trained may be a mask; a second moment may overflow
  set("scale", -INFINITY);
  set("optimizer/momentum_buffer/table", INFINITY);
  EXPECT_EQ(save(*saver, 3), 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000003"}));
}

// What is written in the background is the state that it began with.
TEST_F(CheckpointTest, TheBackgroundWritesACopy) {
  auto saver = writer(real_file_operations(), 2, /*background=*/true);
  for (uint64_t step : {1, 2, 3}) {
    fill(step);
    saver->begin({static_cast<int64_t>(step), 0, 0});
    fill(77); // while it is written
    EXPECT_EQ(saver->complete().error, 0);
    EXPECT_EQ(newest().step, static_cast<int64_t>(step));
    EXPECT_TRUE(holds(step));
    saver->prune();
  }
  fill(4);
  saver->begin({4, 0, 0}); // once what is pruned is gone
  saver->begin({5, 0, 0}); // once the one before is written
  EXPECT_EQ(saver->complete().error, 0);
  saver.reset();
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000002", "step-00000003", "step-00000004",
                                               "step-00000005"}));
}

// Until a step from the newest was finite, the one before may be the last good one.
TEST_F(CheckpointTest, PrunesWhenItIsTold) {
  auto saver = writer(real_file_operations(), 1);
  fill(1);
  EXPECT_EQ(saver->save({1, 4, 0}).error, 0);
  EXPECT_EQ(saver->save({2, 8, 1}).error, 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000001", "step-00000002"}));
  EXPECT_EQ(newest().skipped_steps, 1);
  saver->prune();
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000002"}));
}

TEST_F(CheckpointTest, KeepsEveryAndTheBest) {
  keep_policy policy = {2, 10, "held-out-loss"};
  checkpoint_writer saver(trainer_program, memory.places, access, ranks, folder_groups(ranks),
                          real_file_operations(), folder.path(), policy, sample_order{17, 8, 3});
  saver.open();
  fill(1);
  double held_out[] = {3, NAN, 1.5, 2, 1.75, NAN, 1.5};
  for (int64_t i = 0; i < 7; ++i) {
    const named_number loss = {"loss", held_out[i]};
    run_position at = {5 + i * 5, 0, 0, 0.25};
    at.evaluated = {&loss, std::isnan(held_out[i]) ? size_t{0} : size_t{1}};
    EXPECT_EQ(saver.save(at).error, 0);
    saver.prune();
  }
  // 10, 20 and 30 are of every ten; 15 is the best, of two the older; 30 and 35 are the newest.
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000010", "step-00000015", "step-00000020",
                                               "step-00000030", "step-00000035"}));
  checkpoint_info best = read_manifest(folder / "step-00000015");
  EXPECT_EQ(best.metric("held-out-loss"), 1.5);
  EXPECT_EQ(best.loss, 0.25);
  EXPECT_TRUE(std::isnan(read_manifest(folder / "step-00000010").metric("held-out-loss")));
}

TEST(Period, StepsMinutesAndEpochs) {
  period value;
  ASSERT_TRUE(to_period("100", value));
  EXPECT_TRUE(value.of == period::steps && value.count == 100);
  ASSERT_TRUE(to_period("2.5min", value));
  EXPECT_TRUE(value.of == period::minutes && value.count == 2.5);
  ASSERT_TRUE(to_period("1epoch", value));
  EXPECT_TRUE(value.of == period::epochs && value.count == 1);
  ASSERT_TRUE(to_period("0.5epochs", value));
  EXPECT_TRUE(value.of == period::epochs && value.count == 0.5);
  for (const char *text : {"", "min", "1.5", "-1min", "10 min", "10mins", "nan", "inf", "1e400min"})
    EXPECT_FALSE(to_period(text, value)) << text;
}

// A checkpoint of the toy's is not one for this program.
static void expect_refused(const program &other, const std::string &folder, const char *why) {
  try {
    find_checkpoint("latest", folder, other, [](const std::string &) {});
    FAIL();
  } catch (const failure &error) {
    EXPECT_EQ(error.code, exit_checkpoint);
    EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
  }
}

TEST_F(CheckpointTest, AnotherModelIsRefused) {
  fill(1);
  save(*writer(real_file_operations()), 1);
  program other = trainer_program;
  other.fingerprint ^= 1;
  expect_refused(other, folder.path(), "another model: 'toy'");
}

TEST_F(CheckpointTest, ParametersIn64BitsAreRefused) {
  fill(1);
  save(*writer(real_file_operations()), 1);
  program other = trainer_program;
  other.fingerprint ^= 1; // which depends on the type
  other.precision = "f64";
  other.parameter_type = data_type::f64;
  expect_refused(other, folder.path(), "is of --precision f32, and this trainer of f64");
}

TEST_F(CheckpointTest, OnlyOneRunHasAFolder) {
  auto first = std::make_unique<run_folder>(folder / "run", false);
  EXPECT_THROW(run_folder(folder / "run", false), failure);
  first.reset();
  EXPECT_NO_THROW(run_folder(folder / "run", false));
}

// The order in which a checkpoint reaches the disk: contents before names, and a name before
// what relies on it.
TEST_F(CheckpointTest, SyncsBeforeItRenamesAndRenamesBeforeItRemoves) {
  recording_operations files;
  auto saver = writer(files, 1);
  fill(1);
  ASSERT_EQ(save(*saver, 1), 0);
  files.calls.clear();
  fill(2);
  ASSERT_EQ(save(*saver, 2), 0);
  std::string parent = std::filesystem::path(folder.path()).filename();
  std::vector<std::string> expected = {
      "mkdir .writing-step-00000002",
      "create rank-00000-of-00001.safetensors",
      "write rank-00000-of-00001.safetensors",
      "fsync rank-00000-of-00001.safetensors",
      "close rank-00000-of-00001.safetensors",
      "create manifest.json",
      "write manifest.json",
      "fsync manifest.json",
      "close manifest.json",
      "open .writing-step-00000002",
      "fsync .writing-step-00000002",
      "close .writing-step-00000002",
      "rename .writing-step-00000002 step-00000002",
      "open " + parent,
      "fsync " + parent,
      "close " + parent,
      "rename step-00000001 .removing-step-00000001",
  };
  files.calls.resize(std::min(files.calls.size(), expected.size()));
  EXPECT_EQ(files.calls, expected);
}

// The older one of the same step goes once the new one has its name for good.
TEST_F(CheckpointTest, SyncsBeforeItRemovesTheSameStep) {
  recording_operations files;
  auto saver = writer(files, 1);
  fill(1);
  ASSERT_EQ(save(*saver, 1), 0);
  files.calls.clear();
  fill(2);
  ASSERT_EQ(saver->save({1, 4, 0}).error, 0);
  std::string parent = std::filesystem::path(folder.path()).filename();
  std::vector<std::string> expected = {"exchange .writing-step-00000001 step-00000001",
                                       "open " + parent,
                                       "fsync " + parent,
                                       "close " + parent,
                                       "unlink manifest.json",
                                       "unlink rank-00000-of-00001.safetensors",
                                       "rmdir .writing-step-00000001"};
  ASSERT_GT(files.calls.size(), expected.size());
  files.calls.erase(files.calls.begin(),
                    files.calls.end() - static_cast<std::ptrdiff_t>(expected.size()));
  EXPECT_EQ(files.calls, expected);
}

// So that a checkpoint is not in a folder that the disk does not know.
TEST_F(CheckpointTest, NewFoldersAreSynced) {
  auto made = [](const std::string &parent, const std::string &name) {
    return std::vector<std::string>{"mkdir " + name, "open " + parent, "fsync " + parent,
                                    "close " + parent};
  };
  std::string parent = std::filesystem::path(folder.path()).filename();
  recording_operations files;
  run_folder run(folder / "runs/toy", false, files);
  std::vector<std::string> expected = made(parent, "runs"), inner = made("runs", "toy");
  expected.insert(expected.end(), inner.begin(), inner.end());
  EXPECT_EQ(files.calls, expected);
  files.calls.clear();
  checkpoint_writer(trainer_program, memory.places, access, ranks, folder_groups(ranks), files,
                    folder / "runs/toy/checkpoints", keep_policy(), sample_order{17, 8, 3})
      .open();
  EXPECT_EQ(files.calls, made("toy", "checkpoints"));
}

// That there was a checkpoint outlives a crash like the checkpoint itself. Later ones cost nothing.
TEST_F(CheckpointTest, TheMarkOfTheFirstCheckpointIsSynced) {
  recording_operations files;
  run_folder run(folder / "toy", false, files);
  files.calls.clear();
  run.note_saved();
  EXPECT_EQ(files.calls, (std::vector<std::string>{"create .saved", "close .saved", "open toy",
                                                   "fsync toy", "close toy"}));
  files.calls.clear();
  run.note_saved();
  EXPECT_TRUE(files.calls.empty());
  EXPECT_TRUE(has_saved(folder / "toy"));
}

// Whatever fails of it is tried again with the next checkpoint.
TEST_F(CheckpointTest, TheMarkOfTheFirstCheckpointIsTriedAgain) {
  faulty_operations files;
  run_folder run(folder / "toy", false, files);
  for (files.failing = 0; files.failing < 3; ++files.failing) { // create, close, open
    files.calls = 0;
    run.note_saved();
    EXPECT_GT(files.calls, files.failing);
  }
  files.failing = -1;
  files.calls = 0;
  run.note_saved();
  EXPECT_GT(files.calls, 0);
  EXPECT_TRUE(has_saved(folder / "toy"));
  files.calls = 0;
  run.note_saved();
  EXPECT_EQ(files.calls, 0);
}

// A folder of checkpoints that was removed and is made again; what fails of that is, too.
TEST_F(CheckpointTest, AFolderThatIsMadeAgainIsSynced) {
  const std::string inner = folder / "run/checkpoints";
  auto writer_in = [&](file_operations &files) {
    auto saver = std::make_unique<checkpoint_writer>(trainer_program, memory.places, access, ranks,
                                                     folder_groups(ranks), files, inner,
                                                     keep_policy(), sample_order{17, 8, 3});
    saver->open();
    std::filesystem::remove_all(inner);
    return saver;
  };
  auto synced = [](const std::vector<std::string> &calls) {
    return std::count(calls.begin(), calls.end(), "fsync run");
  };
  fill(1);
  recording_operations recorded;
  auto saver = writer_in(recorded);
  recorded.calls.clear();
  EXPECT_EQ(save(*saver, 1), 0);
  EXPECT_EQ(synced(recorded.calls), 1);
  recorded.calls.clear();
  EXPECT_EQ(save(*saver, 2), 0);
  EXPECT_EQ(synced(recorded.calls), 0);

  struct failing_sync : recording_operations {
    bool fails = true; // once, of the run's folder
    int sync(int file) override {
      const int result = recording_operations::sync(file);
      if (!fails || calls.back() != "fsync run")
        return result;
      fails = false;
      errno = EIO;
      return -1;
    }
  };
  failing_sync broken;
  broken.fails = false;
  saver = writer_in(broken);
  broken.fails = true;
  EXPECT_EQ(save(*saver, 1), EIO);
  broken.calls.clear();
  EXPECT_EQ(save(*saver, 2), 0);
  EXPECT_EQ(synced(broken.calls), 1);
}

// Nor a line in a log that it does not know.
TEST_F(CheckpointTest, ANewLogIsSynced) {
  const std::string name = std::filesystem::path(folder.path()).filename();
  const std::vector<std::string> synced = {"open " + name, "fsync " + name, "close " + name};
  recording_operations files;
  step_log(folder / "log.jsonl", 0, files);
  EXPECT_EQ(files.calls, synced);
  files.calls.clear();
  step_log(folder / "log.jsonl", 3, files); // goes on
  EXPECT_EQ(files.calls, synced);
  files.calls.clear();
  folder.write("log.jsonl", "a note\n");
  step_log(folder / "log.jsonl", 3, files); // written anew by way of another file
  ASSERT_GT(files.calls.size(), synced.size());
  EXPECT_TRUE(std::equal(synced.rbegin(), synced.rend(), files.calls.rbegin()));
  faulty_operations broken;
  broken.failing = 1;
  EXPECT_THROW(step_log(folder / "log.jsonl", 0, broken), failure);
}

// Thousands of old checkpoints take longer than --hang-timeout.
TEST_F(CheckpointTest, WhatIsRemovedIsASignOfLifeEach) {
  std::filesystem::create_directories(folder / "kept");
  std::ofstream(folder / "kept/file") << "stays";
  std::filesystem::create_directories(folder / "run/step-1/inner");
  for (const char *file : {"run/step-1/a", "run/step-1/b", "run/step-1/inner/c"})
    std::ofstream(folder / file) << file;
  std::filesystem::create_directory_symlink(folder / "kept", folder / "run/step-1/link");
  recording_operations files;
  const uint64_t before = own_signs.work;
  EXPECT_EQ(files.remove_tree(folder / "run"), 0);
  EXPECT_EQ(files.calls.size(), 7u); // three files, a link, three folders
  EXPECT_EQ(files.calls.back(), "rmdir run");
  EXPECT_GE(own_signs.work - before, files.calls.size());
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  EXPECT_TRUE(std::filesystem::exists(folder / "kept/file"));
  EXPECT_EQ(files.remove_tree(folder / "run"), 0); // nothing is there
  faulty_operations broken;
  broken.failing = 0;
  EXPECT_EQ(broken.remove_tree(folder / "kept"), -1);
  EXPECT_EQ(errno, EIO);
}

// A run that did not begin removes its lock, just when another one has opened it.
TEST_F(CheckpointTest, ALockThatIsGoneLocksNothing) {
  class removing_operations : public file_operations {
  public:
    explicit removing_operations(std::string path) : path_(std::move(path)) {}
    int lock(int file) override {
      std::filesystem::remove(path_);
      return file_operations::lock(file);
    }

  private:
    std::string path_;
  } files(folder / "run/.lock");
  EXPECT_THROW(run_folder(folder / "run", false, files), failure);
}

// A disk that fails meanwhile takes no checkpoint away.
TEST_F(CheckpointTest, WhatCannotGetItsNameBackStays) {
  fill(1);
  save(*writer(real_file_operations()), 1);
  bool recovered = false;
  for (int failing = 0; !recovered; ++failing) {
    std::filesystem::rename(folder / "step-00000001", folder / ".removing-step-00000001");
    faulty_operations files;
    files.failing = failing;
    try {
      recover_checkpoints(folder.path(), files);
      recovered = true;
    } catch (const failure &error) {
      EXPECT_EQ(error.code, exit_disk);
      recover_checkpoints(folder.path());
    }
    ASSERT_EQ(newest().step, 1) << failing;
  }
}

TEST_F(CheckpointTest, WhatGetsItsNameBackIsSynced) {
  fill(1);
  save(*writer(real_file_operations()), 1);
  // a kill after its last write, before any fsync
  std::filesystem::rename(folder / "step-00000001", folder / ".writing-step-00000001");
  recording_operations files;
  recover_checkpoints(folder.path(), files);
  std::string parent = std::filesystem::path(folder.path()).filename();
  std::vector<std::string> expected;
  auto synced = [&](const std::string &name) {
    for (const char *call : {"open ", "fsync ", "close "})
      expected.push_back(call + name);
  };
  for (const char *name :
       {"rank-00000-of-00001.safetensors", "manifest.json", ".writing-step-00000001"})
    synced(name);
  expected.emplace_back("rename .writing-step-00000001 step-00000001");
  synced(parent);
  EXPECT_EQ(files.calls, expected);
}

// A run goes on from step 20 since 30 is damaged, which then neither counts nor goes.
TEST_F(CheckpointTest, TheDamagedDoNotCount) {
  {
    auto saver = writer(real_file_operations());
    for (int64_t step : {10, 20, 30}) {
      fill(static_cast<uint64_t>(step));
      save(*saver, step);
    }
  }
  folder.write("step-00000030/rank-00000-of-00001.safetensors", "damaged");
  auto saver = std::make_unique<checkpoint_writer>(
      trainer_program, memory.places, access, ranks, folder_groups(ranks), real_file_operations(),
      folder.path(), keep_policy(), sample_order{17, 8, 0}, false);
  saver->open(newest().sequence);
  fill(25);
  save(*saver, 25);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000020", "step-00000025", "step-00000030"}));
  fill(30);
  save(*saver, 30); // in its place
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000025", "step-00000030"}));
  EXPECT_EQ(newest().step, 30);
  EXPECT_EQ(warnings, "");
}

TEST_F(CheckpointTest, WhatWasCompleteGetsItsNameBack) {
  {
    auto saver = writer(real_file_operations(), 5);
    for (int64_t step : {1, 2, 3}) {
      fill(static_cast<uint64_t>(step));
      save(*saver, step);
    }
  }
  namespace fs = std::filesystem;
  fs::rename(folder / "step-00000003", folder / ".removing-step-00000003");
  fs::rename(folder / "step-00000002", folder / ".writing-step-00000002");
  fs::copy(folder / "step-00000001", folder / ".writing-step-00000004"); // its manifest says 1
  fs::remove(folder / ".writing-step-00000004/manifest.json");
  fs::copy(folder / "step-00000001", folder / ".writing-step-00000005"); // a file is cut
  fs::resize_file(folder / ".writing-step-00000005/rank-00000-of-00001.safetensors", 1000);
  recover_checkpoints(folder.path());
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000001", "step-00000002", "step-00000003"}));
  EXPECT_EQ(newest().step, 3);
}

// What is said of a manifest that somebody has changed, with a checksum that agrees.
static std::string problem_of_manifest(scratch_folder &folder,
                                       const std::function<void(std::string &)> &change) {
  const std::string name = "step-00000001/manifest.json", checksum = ",\n  \"crc32c\": \"";
  const std::string before = read_bytes(folder / name);
  std::string text = before.substr(0, before.rfind(checksum));
  change(text);
  folder.write(name, text + format_text("%s%08x\"\n}\n", checksum.c_str(),
                                        crc32c(0, text.data(), text.size())));
  std::string problem;
  try {
    read_manifest(folder / "step-00000001");
  } catch (const failure &error) {
    EXPECT_EQ(error.code, exit_checkpoint);
    problem = error.message;
  }
  folder.write(name, before);
  return problem;
}

TEST_F(CheckpointTest, AManifestThatNestsTooDeepIsDamaged) {
  save(*writer(real_file_operations()), 1);
  const size_t depth = 1'000'000;
  EXPECT_EQ(problem_of_manifest(folder,
                                [&](std::string &text) {
                                  text += ",\n  \"x\": " + std::string(depth, '[') +
                                          std::string(depth, ']');
                                }),
            std::string(folder / "step-00000001/manifest.json") + ": is damaged");
}

TEST_F(CheckpointTest, AbsurdNumbersOfAManifestAreNamed) {
  save(*writer(real_file_operations()), 1);
  for (const char *name : {"step", "batches_taken", "skipped_steps", "samples_per_batch",
                           "data_order", "sequence", "seed", "count", "variance"})
    for (const char *value :
         {"-1", "-9223372036854775808", "9223372036854775807", "1e300", "null"}) {
      const bool is_taken = (std::string(name) == "seed" && value[0] == '9') ||
                            (std::string(name) == "variance" && value[0] != '-' && value[0] != 'n');
      const std::string problem = problem_of_manifest(folder, [&](std::string &text) {
        const std::string member = format_text("\"%s\": ", name);
        const size_t at = text.find(member);
        ASSERT_NE(at, std::string::npos) << name;
        const size_t begin = at + member.size(), end = text.find_first_of(",}\n", begin);
        text.replace(begin, end - begin, value);
      });
      if (is_taken)
        EXPECT_EQ(problem, "") << name << ' ' << value;
      else
        EXPECT_NE(problem.find(format_text("is damaged: '%s' is ", name)), std::string::npos)
            << name << ' ' << value << ": " << problem;
    }
}

TEST_F(CheckpointTest, PathsNameCheckpoints) {
  fill(1);
  auto saver = writer(real_file_operations());
  save(*saver, 1);
  fill(2);
  save(*saver, 2);
  auto find = [&](const std::string &which) {
    return find_checkpoint(which, "/nowhere", trainer_program, [](const std::string &) {}).step;
  };
  EXPECT_EQ(find(folder / "step-00000001"), 1);
  EXPECT_EQ(find(folder.path()), 2);
  EXPECT_THROW(find(folder / "step-00000003"), failure);
  EXPECT_EQ(find_checkpoint("latest", folder / "none", trainer_program, [](const auto &) {}).path,
            "");
}

// Flips single bits and cuts files of the newest checkpoint: each damage is found
// and the one before is taken.
TEST_F(CheckpointTest, EveryDamageIsFoundAndTheOneBeforeTaken) {
  auto saver = writer(real_file_operations());
  for (uint64_t step : {1, 2}) {
    fill(step);
    save(*saver, static_cast<int64_t>(step));
  }
  const char *more = getenv("TRAINC_TRIALS"); // tests/reliability.sh asks for thousands
  const uint64_t trials = more ? std::stoull(more) : 80;
  std::string where = folder / "step-00000002/";
  for (const char *name : {"manifest.json", "rank-00000-of-00001.safetensors"}) {
    const std::string good = read_bytes(where + name);
    for (uint64_t trial = 0; trial < trials; ++trial) {
      uint64_t at = random_bits(5, random_stream::sampling, trial) % good.size();
      std::string bad = good;
      if (trial % 10 == 0)
        bad.resize(at);
      else
        bad[at] = static_cast<char>(bad[at] ^ (1 << trial % 8));
      folder.write("step-00000002/" + std::string(name), bad);
      EXPECT_EQ(newest().step, 1) << name << " " << at;
      EXPECT_NE(warnings.find("step-00000002"), std::string::npos);
      EXPECT_TRUE(holds(1));
    }
    std::filesystem::remove(where + name);
    EXPECT_EQ(newest().step, 1);
    folder.write("step-00000002/" + std::string(name), good);
    EXPECT_EQ(newest().step, 2);
  }
}

// Every file operation of a save fails in turn, or is the first that a killed process does not
// make. A save writes a step anew, or once more over its checkpoint; in the background or not.
class FaultTest : public CheckpointTest {
protected:
  static constexpr int kill = 0; // in place of an error
  struct circumstances {
    bool background, same_step, can_exchange;
  };
  static std::vector<circumstances> all_circumstances() {
    std::vector<circumstances> all;
    for (bool background : {false, true})
      for (auto [same_step, can_exchange] : {std::pair(false, true), {true, true}, {true, false}})
        all.push_back({background, same_step, can_exchange});
    return all;
  }

  // Returns false when `failing` is beyond the last call of the save.
  bool try_fault(int failing, int error, const circumstances &under) {
    for (auto &entry : std::filesystem::directory_iterator(folder.path()))
      std::filesystem::remove_all(entry.path());
    faulty_operations files;
    files.can_exchange = under.can_exchange;
    auto saver = writer(files, 1, under.background);
    fill(1);
    const int64_t before = under.same_step ? 2 : 1;
    EXPECT_EQ(save(*saver, before), 0);
    while (saver->is_busy()) { // it prunes
    }
    files.calls = 0;
    files.failing = failing;
    files.error = error == kill ? EIO : error;
    files.killed = error == kill;
    fill(2);
    int found = save(*saver, 2);
    while (saver->is_busy()) {
    }
    bool reached = files.calls > failing;
    if (error == kill) {
      files.failing = -1; // no call from here on, but for what a new start does
      saver.reset();
      writer(real_file_operations(), 1);
    }
    check_newest(before, error == kill ? any : found == 0 ? new_one : old_one);
    if (error != kill) { // the run goes on and the next save succeeds
      fill(3);
      EXPECT_EQ(save(*saver, 3), 0);
      EXPECT_EQ(newest().step, 3);
      EXPECT_TRUE(holds(3));
      saver.reset();
      writer(real_file_operations(), 1);
    }
    for (const std::string &name : names()) // a new start has cleaned up
      EXPECT_NE(name[0], '.') << name;
    return reached;
  }
  enum expectation { any, old_one, new_one };
  void check_newest(int64_t before, expectation expected) {
    checkpoint_info found = newest();
    EXPECT_EQ(warnings, ""); // nothing incomplete is visible under a checkpoint's name
    std::string loaded = bytes();
    fill(2);
    if (loaded == bytes()) {
      EXPECT_EQ(found.step, 2);
      EXPECT_NE(expected, old_one); // what was not written is not there
      return;
    }
    EXPECT_NE(expected, new_one);
    EXPECT_EQ(found.step, before);
    fill(1);
    EXPECT_EQ(loaded, bytes());
  }
};

TEST_F(FaultTest, EveryCallUnderAllCircumstances) {
  for (const circumstances &under : all_circumstances())
    for (int error : {EIO, ENOSPC, EINTR, kill}) {
      SCOPED_TRACE(format_text("error %d, background %d, same step %d, exchange %d", error,
                               under.background, under.same_step, under.can_exchange));
      int call = 0;
      while (!HasFailure() && try_fault(call, error, under))
        ++call;
      ASSERT_FALSE(HasFailure()) << "call " << call;
      EXPECT_GT(call, 20); // the save does make calls
    }
}

TEST_F(FaultTest, InterruptedWritesAreRepeated) {
  faulty_operations files;
  auto saver = writer(files);
  fill(4);
  files.error = EINTR;
  files.failing = 5; // a write of the rank's file
  EXPECT_EQ(save(*saver, 1), 0);
  EXPECT_EQ(newest().step, 1);
  EXPECT_TRUE(holds(4));
}

TEST_F(FaultTest, AFullDiskIsExplained) {
  faulty_operations files;
  auto saver = writer(files);
  files.failing = 6;
  files.error = ENOSPC;
  save_result result = saver->save({12, 0, 0});
  ASSERT_EQ(result.error, ENOSPC);
  std::string text = save_problem(result, folder.path(), 12);
  for (const char *words : {"step 12", "No space left on device", "it needs 52", "are available"})
    EXPECT_NE(text.find(words), std::string::npos) << text;
}

} // namespace
} // namespace trainc
