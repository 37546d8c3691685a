// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/trace_file.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace trainc {
namespace {

using nlohmann::json;

const std::string path_of_trace = testing::TempDir() + "trace_file_test.json";

json written(const std::vector<rank_trace> &traces, const planned_steps &plan) {
  trace_file file(path_of_trace, plan);
  for (const rank_trace &trace : traces)
    file.add(trace);
  file.publish();
  std::ifstream in(path_of_trace);
  json document = json::parse(in);
  std::filesystem::remove(path_of_trace);
  return document.at("traceEvents");
}

std::vector<json> of_phase(const json &events, const std::string &phase) {
  std::vector<json> found;
  for (const json &event : events)
    if (event.at("ph") == phase)
      found.push_back(event);
  return found;
}

TEST(trace_file, has_outer_slices_first_and_escapes_names) {
  planned_steps plan;
  plan["f"].push_back({.words = "a \"b\"\n\xff  n", .kernel = "a \"b\"\n\xff", .nodes = {"n\\"}});
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

TEST(step_plan, counts_memory_that_tensors_share_once) {
  const std::string folder = testing::TempDir() + "step_plan_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/steps.txt") << "f: 2 steps\n  0  k  3  n\n  1  m    o\n";
  std::ofstream(folder + "/nodes.json")
      << R"({"entries": [{"entry": "f", "computes": [["n"], ["o", "p"]]}]})";
  std::ofstream(folder + "/memory.json") << R"({"entries": [{"entry": "f", "steps": 2, "tensors": [
    {"arena": "activations", "argument": true, "offset": 0, "bytes": 64, "first_step": 0,
     "last_step": 1},
    {"arena": "activations", "argument": false, "offset": 32, "bytes": 64, "first_step": 1,
     "last_step": 2},
    {"arena": "stash", "argument": false, "offset": 0, "bytes": 8, "first_step": 1,
     "last_step": 1},
    {"arena": "parameters", "argument": true, "offset": 0, "bytes": 8, "first_step": 0,
     "last_step": 1}]}]})";
  planned_steps plan = read_step_words(folder + "/steps.txt");
  EXPECT_EQ(add_details(plan, folder), std::vector{folder + "/kernels.json"});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(plan["f"].size(), 2u);
  EXPECT_EQ(plan["f"][0].kernel, "k  3");
  EXPECT_EQ(plan["f"][1].nodes, (std::vector<std::string>{"o", "p"}));
  EXPECT_EQ(plan["f"][0].alive, 64);
  EXPECT_EQ(plan["f"][1].alive, 104);
}

} // namespace
} // namespace trainc
