// SPDX-License-Identifier: Apache-2.0
//
// Batches that a thread loads ahead are those that are loaded when they are asked for.
#include "runtime/failure.h"
#include "runtime/files/data_types.h"
#include "runtime/options/trainer_table.h"
#include "runtime/step/batch_feed.h"
#include "tests/unit/scratch_folder.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

namespace trainc {

extern const program trainer_program; // of toy_program.cpp: batches of 4 windows of 16 bytes

namespace {

struct fed_device {
  scratch_folder folder;
  trainer_table table{trainer_program};
  trainer_options options;
  communicator ranks;
  std::optional<device> target;
  std::string path;

  fed_device() {
    const char *words[] = {"evaluate", "--tokens", "text"};
    options = table.parse(3, words);
    target.emplace(trainer_program, options, ranks, /*computes=*/true);
    target->allocate(memory_use::forward, 1);
    std::string text;
    for (int i = 0; i < 64 * 20 + 1; ++i)
      text += static_cast<char>(i * i % 251);
    path = folder.write("text.bin", text);
  }
  data_request request() const {
    data_request result;
    result.tokens = {path};
    result.shuffle = true;
    return result;
  }
  // The inputs as the device has them.
  std::string batch() const {
    std::string bytes;
    for (const input_place &place : trainer_program.inputs) {
      const tensor_place &input = place.tensor;
      bytes.append(target->places()[input.arena] + input.offset,
                   static_cast<size_t>(byte_count(input)));
    }
    return bytes;
  }
};

TEST(BatchFeed, GivesWhatIsAskedForWhateverWasPrefetched) {
  fed_device fed;
  loader ahead(trainer_program, fed.request()), plain(trainer_program, fed.request());
  batch_feed fast(trainer_program, *fed.target, ahead), slow(trainer_program, *fed.target, plain);
  EXPECT_GT(batch_feed::bytes(trainer_program, *fed.target), 0);
  struct request {
    data_part part;
    int64_t batch, next;
  };
  const data_part training = data_part::training, all = data_part::all;
  for (auto [part, batch, next] : {request{training, 0, 1},
                                   {training, 1, 2},
                                   {training, 2, 3},
                                   {all, 0, 1},
                                   {all, 1, -1},
                                   {training, 3, 4},
                                   {training, 9, 4},
                                   {training, 4, 25},
                                   {training, 25, 26},
                                   {training, 26, -1}}) {
    slow.submit(part, batch, -1);
    std::string expected = fed.batch();
    slow.submit_nothing();
    EXPECT_EQ(fed.batch(), std::string(expected.size(), '\0'));
    fast.submit(part, batch, next);
    EXPECT_EQ(fed.batch(), expected) << batch;
  }
}

TEST(BatchFeed, ThrowsInTheTurnOfABadBatch) {
  fed_device fed;
  data_request request = fed.request();
  request.shuffle = false;
  loader data(trainer_program, request);
  batch_feed feed(trainer_program, *fed.target, data);
  std::filesystem::resize_file(fed.path, 2 * 64 + 1);
  feed.submit(data_part::all, 0, 1);
  feed.submit(data_part::all, 1, 2); // which cannot be read
  std::string before = fed.batch();
  EXPECT_THROW(feed.submit(data_part::all, 2, 3), failure);
  feed.submit(data_part::all, 1, -1);
  EXPECT_EQ(fed.batch(), before);
}

} // namespace
} // namespace trainc
