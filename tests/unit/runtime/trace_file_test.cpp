// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/living_bytes.h"
#include "runtime/observe/trace_file.h"
#include "tests/unit/scratch_folder.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

using nlohmann::json;

json written(const std::vector<rank_trace> &traces, const plan &plan) {
  scratch_folder folder;
  trace_file file(folder / "trace.json", plan);
  for (const rank_trace &trace : traces)
    file.add(trace);
  file.publish();
  return json::parse(read_bytes(folder / "trace.json")).at("traceEvents");
}

std::vector<json> of_phase(const json &events, const std::string &phase) {
  std::vector<json> found;
  for (const json &event : events)
    if (event.at("ph") == phase)
      found.push_back(event);
  return found;
}

TEST(trace_file, has_outer_slices_first_and_escapes_names) {
  plan plan;
  planned_entry &entry = plan.entries.emplace_back();
  entry.name = "f";
  entry.kernels.resize(1);
  entry.kernels[0].text = "a \"b\"\n\xff";
  entry.steps = {{0, {"n\\"}}};
  const rank_trace trace{.names = {"f", "update", "whole"},
                         .slices = {{1, 2, slice_kind::plan_step, 0, 0},
                                    {1, 3, slice_kind::action, 1},
                                    {1, 4, slice_kind::training_step, 2, 7}}};
  const std::vector<json> slices = of_phase(written({trace}, plan), "X");
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0]["name"], "step 7");
  EXPECT_EQ(slices[1]["name"], "update");
  EXPECT_EQ(slices[2]["name"], "a \"b\"\n\xef\xbf\xbd");
  EXPECT_EQ(slices[2]["args"]["nodes"], "n\\");
  EXPECT_EQ(slices[2]["ts"], 1e6);
  EXPECT_EQ(slices[2]["dur"], 1e6);
}

TEST(trace_file, pairs_messages_of_one_boundary_micro_batch_and_step) {
  std::vector<rank_trace> traces(2);
  for (int rank = 0; rank < 2; ++rank) {
    rank_trace &trace = traces[static_cast<size_t>(rank)];
    trace.rank = trace.stage = rank;
    trace.names = {"step", rank ? "receive activation" : "send activation"};
    for (int step = 0; step < 2; ++step) {
      const double begin = step;
      trace.slices.push_back({begin, begin + 1, slice_kind::training_step, 0, step});
      for (int j = 0; j < 2; ++j)
        trace.slices.push_back(
            {begin + 0.25 * j, begin + 0.25 * j + 0.25, slice_kind::action, 1, -1, -1, j, 0});
    }
  }
  const json events = written(traces, {});
  const std::vector<json> leave = of_phase(events, "s"), arrive = of_phase(events, "f");
  ASSERT_EQ(leave.size(), 4u);
  ASSERT_EQ(arrive.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(leave[i]["id"], i + 1);
    EXPECT_EQ(arrive[i]["id"], i + 1);
    EXPECT_LT(leave[i]["ts"].get<double>(), arrive[i]["ts"].get<double>());
  }
}

TEST(trace_file, has_tracks_of_batches_and_checkpoints_where_there_are_some) {
  const rank_trace with{.names = {"step", "read batch", "write checkpoint"},
                        .slices = {{1, 4, slice_kind::training_step, 0, 7},
                                   {.begin = 0,
                                    .end = 2,
                                    .kind = slice_kind::batch,
                                    .name = 1,
                                    .number = 5,
                                    .waiting = 1,
                                    .bytes = 64},
                                   {.begin = 3,
                                    .end = 9,
                                    .kind = slice_kind::checkpoint,
                                    .name = 2,
                                    .number = 6,
                                    .bytes = 128}}};
  const rank_trace without{.rank = 1, .names = {"step"}, .slices = {{1, 4, {}, 0, 7}}};
  const json events = written({with, without}, {});
  std::vector<std::string> tracks;
  for (const json &event : of_phase(events, "M"))
    if (event["name"] == "thread_name")
      tracks.push_back(event["args"]["name"]);
  EXPECT_EQ(tracks, (std::vector<std::string>{"compute", "exchange", "loader", "checkpoint",
                                              "compute", "exchange"}));
  const std::vector<json> slices = of_phase(events, "X");
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[0]["tid"], 2);
  EXPECT_EQ(slices[0]["args"], json({{"batch", 5}, {"bytes", 64}, {"waiting_seconds", 1.0}}));
  EXPECT_EQ(slices[2]["tid"], 3);
  EXPECT_EQ(slices[2]["cat"], "checkpoint");
  EXPECT_EQ(slices[2]["args"], json({{"step", 6}, {"bytes", 128}}));
}

planned_tensor tensor(const char *arena, int64_t offset, int64_t bytes, int first, int last) {
  planned_tensor made;
  made.arena = arena;
  made.offset = offset;
  made.bytes = bytes;
  made.first = first;
  made.last = last;
  return made;
}

TEST(living_bytes, counts_memory_that_tensors_share_once) {
  planned_entry entry;
  entry.steps.resize(2);
  entry.tensors = {tensor("activations", 0, 64, 0, 1), tensor("activations", 32, 64, 1, 2),
                   tensor("stash", 0, 8, 1, 1), tensor("parameters", 0, 8, 0, 1)};
  entry.tensors[0].is_argument = entry.tensors[3].is_argument = true;
  EXPECT_EQ(needed_bytes_of(entry), (std::vector<int64_t>{64, 104}));
}

} // namespace
} // namespace trainc
