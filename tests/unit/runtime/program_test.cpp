// SPDX-License-Identifier: Apache-2.0
//
// The rest of a trainer: command line, sums in order, the log, the ONNX writer, the
// CPU check and the counter of allocations.
#include "runtime/arena.h"
#include "runtime/checkpoint/onnx_export.h"
#include "runtime/cpu/ranks/flat_sum.h"
#include "runtime/failure.h"
#include "runtime/options/trainer_table.h"
#include "runtime/process/cpu_check.h"
#include "runtime/process/host_memory.h"
#include "runtime/process/last_words.h"
#include "runtime/random.h"
#include "runtime/run/step_log.h"
#include "tests/unit/scratch_folder.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <omp.h>

namespace trainc {

extern const program trainer_program; // of toy_program.cpp

namespace {

trainer_options parse(std::vector<const char *> words) {
  return trainer_table(trainer_program).parse(static_cast<int>(words.size()), words.data());
}

std::string usage_problem(std::vector<const char *> words) {
  try {
    parse(std::move(words));
  } catch (const failure &error) {
    EXPECT_EQ(error.code, exit_usage);
    return error.message;
  }
  return "";
}

TEST(Options, ValuesAndDefaults) {
  trainer_options options =
      parse({"train", "--steps", "20", "--learning-rate=3e-4", "--data", "x=a.npy", "--data",
             "labels=b=c.npy", "--no-shuffle", "--weight-decay", "0.1"});
  EXPECT_EQ(options.steps, 20);
  EXPECT_EQ(options.learning_rate, 3e-4);
  EXPECT_EQ(options.data, (std::vector<std::string>{"x=a.npy", "labels=b=c.npy"}));
  EXPECT_TRUE(options.no_shuffle);
  EXPECT_FALSE(options.no_progress);
  EXPECT_EQ(options.hyperparameters, (std::vector<std::optional<double>>{0.9, 0.1}));
  EXPECT_TRUE(std::isinf(options.clip_norm));
  EXPECT_FALSE(options.given.count("seed"));
  EXPECT_EQ(parse({"gradients", "-o", "g.safetensors"}).output, "g.safetensors");
  EXPECT_EQ(parse({"generate", "--prompt", "-dash"}).prompt, "-dash");
}

TEST(Options, AllProblemsWithTheNearestName) {
  std::string problem = usage_problem({"train", "--stepz", "20", "--seed", "x", "--keep", "0",
                                       "--schedule", "stairs", "stray", "--data", "x", "--steps"});
  for (const char *words :
       {"unknown option '--stepz' of train\n  try: --steps", "--seed: 'x' is not a number",
        "--keep: 0 is below 1", "--schedule: 'stairs' is none of constant|linear|cosine",
        "unexpected argument 'stray'", "'x' does not have the form NAME=FILE",
        "--steps: has no value\n  try: --steps=N"})
    EXPECT_NE(problem.find(words), std::string::npos) << words << "\n" << problem;
  EXPECT_NE(usage_problem({"tain"}).find("unknown command 'tain'"), std::string::npos);
  EXPECT_NE(usage_problem({"train", "--seed", "1.5"}).find("whole number"), std::string::npos);
  EXPECT_NE(usage_problem({"train", "--seed", "1", "--seed", "2"}).find("twice"),
            std::string::npos);
  EXPECT_NE(usage_problem({"export", "--steps", "3"}).find("unknown option"), std::string::npos);
}

TEST(Options, HelpNamesEverything) {
  trainer_table table(trainer_program);
  EXPECT_TRUE(parse({"help"}).wants_help);
  const std::string nothing = usage_problem({});
  for (const char *words : {"usage: trainer COMMAND", "no command given", "try: train, evaluate"})
    EXPECT_NE(nothing.find(words), std::string::npos) << nothing;
  trainer_options options = parse({"train", "--nonsense-is-ignored", "--help"});
  ASSERT_TRUE(options.wants_help);
  std::string help = table.help_of(*options.command);
  for (auto &[name, value] : table.values(parse({"train"})))
    EXPECT_NE(help.find("--" + name), std::string::npos) << name;
  EXPECT_NE(help.find("Exit status"), std::string::npos);
  EXPECT_NE(table.overview().find("generate"), std::string::npos);
}

TEST(MemoryLimit, TheTightestGroupSaysWhatIsLeft) {
  scratch_folder folder;
  auto file = [&](const std::string &name, const std::string &text) {
    std::filesystem::path path = folder.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  auto left = [&](const char *groups) { return available_in_groups(groups, folder.path()); };
  EXPECT_EQ(left(""), INT64_MAX);
  EXPECT_EQ(left("0::/job/step\n"), INT64_MAX); // no file says a limit
  file("job/step/memory.max", "max\n");
  file("job/step/memory.current", "700\n");
  EXPECT_EQ(left("0::/job/step\n"), INT64_MAX);
  file("job/memory.max", "1000\n"); // of the parent
  file("job/memory.current", "800\n");
  file("job/memory.stat", "anon 500\ninactive_file 100\nactive_file 7\n");
  EXPECT_EQ(left("0::/job/step\n"), 300);
  EXPECT_EQ(left("0::/\n"), INT64_MAX);
  file("memory.max", "10");
  file("memory.current", "20");
  EXPECT_EQ(left("0::/\n"), 0);
  file("memory/box/memory.limit_in_bytes", "5000\n"); // version 1
  file("memory/box/memory.usage_in_bytes", "4000\n");
  file("memory/box/memory.stat", "total_inactive_file 500\n");
  EXPECT_EQ(left("9:cpu,cpuacct:/other\n4:memory,hugetlb:/box\n1:name=systemd:/x\n"), 1500);
  EXPECT_GT(available_memory(), 0);
}

TEST(FlatSum, AddsInTheGivenOrder) {
  constexpr int64_t count = 10007;
  std::vector<std::vector<float>> arrays(5, std::vector<float>(count));
  for (size_t a = 0; a < 5; ++a)
    for (size_t i = 0; i < count; ++i)
      arrays[a][i] = static_cast<float>(random_uniform(a, random_stream::sampling, i) - 0.5);
  std::vector<float> expected(count), total(count);
  for (size_t i = 0; i < count; ++i)
    expected[i] = ((arrays[0][i] + arrays[1][i]) + (arrays[2][i] + arrays[3][i])) + arrays[4][i];
  std::vector<summand> summands;
  std::vector<char *> targets;
  for (size_t a = 0; a < 5; ++a) {
    targets.push_back(reinterpret_cast<char *>(arrays[a].data()));
    constexpr int additions[] = {0, 1, 0, 2, 1};
    summands.push_back({targets.back(), additions[a]});
  }
  char *target = reinterpret_cast<char *>(total.data());
  for (int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    sum_in_order(data_type::f32, summands, &target, 1, 0, count);
    EXPECT_EQ(memcmp(total.data(), expected.data(), count * 4), 0);
  }
  std::vector<float> before = arrays[1];
  sum_in_order(data_type::f32, summands, targets.data(), 5, 100, 200);
  EXPECT_EQ(arrays[1][99], before[99]);
  EXPECT_EQ(arrays[1][200], before[200]);
  for (auto &array : arrays)
    EXPECT_EQ(memcmp(array.data() + 100, expected.data() + 100, 400), 0);
}

std::vector<nlohmann::json> lines_of(const std::string &path) {
  std::istringstream text(read_bytes(path));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(Log, LinesAreJsonAndTrimmedOnResume) {
  scratch_folder folder;
  std::string path = folder / "run.jsonl";
  {
    step_log log(path, 0);
    log.expect({{"loss", 0}, {"accuracy", 0}});
    for (int64_t step = 1; step <= 4; ++step)
      log.write({step, 0.1, 1e-300, 3e-4, 12.5, 80, step == 1 ? 0.0 : 640.0});
    log.write_held_out(4, {{"loss", 2.5}, {"accuracy", 0.5}});
    log.write_summary({4, 0, 1.5, 1000});
  }
  std::string deep =
      "{\"step\": 2, \"x\": " + std::string(100'000, '[') + std::string(100'000, ']');
  folder.write("run.jsonl",
               read_bytes(path) + deep + "}\n{\"step\": 5, \"lo"); // died while writing
  {
    step_log log(path, 3);
    log.write({4, 0.25, 1, 1, 1, 1, 0});
  }
  const std::vector<nlohmann::json> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["loss"].get<double>(), 0.1);
  EXPECT_EQ(lines[0]["gradient_norm"].get<double>(), 1e-300);
  EXPECT_FALSE(lines[0].contains("tokens_per_second"));
  EXPECT_EQ(lines[1]["tokens_per_second"].get<double>(), 640);
  EXPECT_EQ(lines[3]["step"].get<int>(), 4);
  EXPECT_EQ(lines[3]["loss"].get<double>(), 0.25);
  EXPECT_THROW(step_log(folder / "no/such/folder.jsonl", 0), failure);
}

TEST(Log, WarningsAreOfStepsAndWaitForTheFirstLine) {
  scratch_folder folder;
  const std::string path = folder / "run.jsonl", text = "a \"name\"\n  try: caf\xe9";
  {
    step_log log(path, 0);
    log.write_warning(0, text);
    EXPECT_EQ(read_bytes(path), "");
    for (int64_t step = 1; step <= 4; ++step) {
      log.write({step, 0.1, 1, 3e-4, 12.5, 80, 640});
      log.write_warning(step, "of a step");
    }
    log.write_warning(9, "of a later one");
  }
  std::vector<nlohmann::json> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[0]["warning"].get<int>(), 0);
  EXPECT_EQ(lines[0]["text"].get<std::string>().rfind("a \"name\"\n  try: caf", 0), 0u);
  step_log log(path, 3);
  EXPECT_EQ(log.damaged(), "");
  EXPECT_EQ(log.last_step(), 3);
  lines = lines_of(path);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines.back()["warning"].get<int>(), 3);
  log.expect({{"loss", 0}});
  log.write_held_out(2, {{"loss", 1}}); // no warning is an evaluation's line
  EXPECT_EQ(lines_of(path).size(), 8u);
}

TEST(Log, AFailureIsTheEndOnce) {
  scratch_folder folder;
  const std::string path = folder / "run.jsonl";
  run_summary summary = {0, 0, 1.5, 1000};
  summary.ended = "failed";
  summary.exit_code = 3;
  summary.reason = "a \"reason\"";
  {
    step_log log(path, 0); // without a step there is no run
    log.write_summary(summary);
    say_last_words(8, "late");
  }
  EXPECT_EQ(read_bytes(path), "");
  {
    step_log log(path, 0);
    log.write({1, 0.1, 1, 3e-4, 12.5, 80, 640});
    log.write_summary(summary);
    say_last_words(8, "late");
  }
  std::vector<nlohmann::json> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["ended"].get<std::string>(), "failed");
  EXPECT_EQ(lines[1]["exit_code"].get<int>(), 3);
  EXPECT_EQ(lines[1]["reason"].get<std::string>(), "a \"reason\"");
  {
    step_log log(path, 1);
    say_last_words(8,
                   ("rank 1 \"has\" died" + std::string(2000, '.') + "\n  try: nothing").c_str());
    log.write_summary(summary);
  }
  lines = lines_of(path);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["exit_code"].get<int>(), 8);
  EXPECT_EQ(lines[1]["reason"].get<std::string>().rfind("rank 1 ?has? died...", 0), 0u);
  say_last_words(8, "after the log"); // which nobody hears
  EXPECT_EQ(lines_of(path).size(), 2u);
}

TEST(Log, WhateverIsWrittenIsReadAgain) {
  scratch_folder folder;
  const std::string path = folder / "run.jsonl";
  // Of several outputs a metric bears the name of its own, which may be anything.
  const std::string long_name = "an \"output\"" + std::string(2000, 'x') + "_accuracy";
  for (int64_t resumed = 0; resumed <= 20; resumed += 10) {
    step_log log(path, resumed);
    const std::vector<named_number> results = {
        {"loss", NAN}, {"top_5_accuracy", 0.5}, {long_name.c_str(), 0.25}};
    log.expect(results);
    EXPECT_EQ(log.damaged(), "");
    EXPECT_EQ(log.last_step(), resumed);
    for (int64_t step = resumed + 1; step <= resumed + 10; ++step) {
      log.write({step, 0.1, 1, 3e-4, 12.5, 80, 640});
      log.write({step, NAN, INFINITY, 3e-4, 12.5, 80, 0, true, {0.1, 0.2, 0.1}});
      log.write_held_out(step, results);
    }
    run_summary summary = {10, 10, 1.5, 1000};
    summary.ended = "preempted";
    summary.rate = 1e11;
    log.write_warning(resumed + 10, "a warning");
    log.write_summary(summary);
    log.write_machine(1e11, 0.5);
    EXPECT_EQ(log.error(), 0);
  }
  EXPECT_EQ(files_of_log(path).size(), 1u);
}

TEST(Metric, TheBestIsTheLowestAndOfAnAccuracyTheHighest) {
  const std::vector<named_number> results = {{"loss", 2}, {"top_5_accuracy", 0.5}};
  EXPECT_EQ(metric_of("loss", 3, results), 3);
  EXPECT_EQ(metric_of("held-out-loss", 3, results), 2);
  EXPECT_EQ(metric_of("held-out-top-5-accuracy", 3, results), -0.5);
  EXPECT_TRUE(std::isnan(metric_of("none", 3, results)));
  EXPECT_TRUE(std::isnan(metric_of("held-out-accuracy", 3, results)));
  EXPECT_TRUE(std::isnan(metric_of("held-out-loss", 3, {})));

  best_evaluation best;
  EXPECT_FALSE(best.add(1, NAN)); // as of data without labels
  EXPECT_TRUE(best.add(2, 5));
  EXPECT_FALSE(best.add(3, 5)); // of equals the first
  EXPECT_FALSE(best.add(4, INFINITY));
  EXPECT_TRUE(best.add(5, 4));
  EXPECT_FALSE(best.add(6, 4.5));
  EXPECT_EQ(best.step, 5);
  EXPECT_EQ(best.later, 1);
}

TEST(CpuCheck, KnowsNamesAndFeatures) {
  std::string missing;
  EXPECT_TRUE(cpu_supports("x86-64", &missing));
  EXPECT_TRUE(cpu_supports("a-name-of-the-future", &missing));
  EXPECT_EQ(cpu_supports("avx512f,sse3", &missing), __builtin_cpu_supports("avx512f") != 0);
  if (!__builtin_cpu_supports("amx-tile")) {
    EXPECT_FALSE(cpu_supports("sapphirerapids", &missing));
    EXPECT_NE(missing.find("amx-tile"), std::string::npos);
  }
}

// Field numbers and contents of a protobuf message, one level.
std::vector<std::pair<uint64_t, std::string>> fields_of(const std::string &text) {
  std::vector<std::pair<uint64_t, std::string>> result;
  size_t at = 0;
  auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      auto byte = static_cast<unsigned char>(text.at(at++));
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128)
        return value;
    }
  };
  while (at < text.size()) {
    uint64_t tag = varint(), value = varint();
    if ((tag & 7) == 2) {
      result.emplace_back(tag >> 3, text.substr(at, value));
      at += value;
    } else {
      result.emplace_back(tag >> 3, std::to_string(value));
    }
  }
  return result;
}

class ExportTest : public testing::Test {
protected:
  ExportTest() {
    auto kind = arena_kind::parameters;
    memory.allocate(kind, trainer_program.arena_bytes[static_cast<int>(kind)]);
    values = reinterpret_cast<float *>(memory.places[kind]);
    for (int i = 0; i < 256 * 257; ++i)
      values[i] = static_cast<float>(i);
    // ir_version 8, a graph named "toy" with an empty node, producer_name "x"
    folder.write("template.onnx", std::string("\x08\x08\x3a\x07\x12\x03toy\x0a\0\x12\x01x", 14));
  }
  void write(bool external, file_operations &files = real_file_operations()) {
    export_onnx(trainer_program, memory.places, folder / "template.onnx", folder / "out.onnx",
                external, files);
  }
  scratch_folder folder;
  arena_set memory;
  float *values;
};

TEST_F(ExportTest, InitializersJoinTheGraph) {
  write(false);
  auto model = fields_of(read_bytes(folder / "out.onnx"));
  ASSERT_EQ(model.size(), 3u);
  EXPECT_EQ(model[0], (std::pair<uint64_t, std::string>{1, "8"}));
  int graphs = 0;
  for (auto &[number, graph] : model) {
    if (number != 7)
      continue;
    ++graphs;
    auto fields = fields_of(graph);
    ASSERT_EQ(fields.size(), 6u); // name, node, four initializers
    EXPECT_EQ(fields[0].second, "toy");
    auto transposed = fields_of(fields[3].second);
    std::string name, data;
    for (auto &[field, content] : transposed) {
      name = field == 8 ? content : name;
      data = field == 9 ? content : data;
    }
    EXPECT_EQ(name, "table_transposed");
    float second;
    ASSERT_EQ(data.size(), 256u * 256 * 4);
    memcpy(&second, data.data() + 4, 4);
    EXPECT_EQ(second, 256.0f);
  }
  EXPECT_EQ(graphs, 1);
}

TEST_F(ExportTest, ExternalDataLiesBeside) {
  write(true);
  std::string data = read_bytes(folder / "out.onnx.data");
  float value;
  memcpy(&value, data.data() + 4, 4);
  EXPECT_EQ(value, 1.0f);
  memcpy(&value, data.data() + 256 * 256 * 4 + 4, 4); // offsets are page-aligned
  EXPECT_EQ(value, 256.0f);
  EXPECT_LT(read_bytes(folder / "out.onnx").size(), 1000u);
}

// The older model would have the weights of this one.
TEST_F(ExportTest, AModelWithoutRoomLeavesTheOlderWeights) {
  class full_disk : public file_operations {
    int create(const char *path) override {
      if (std::string(path).find("out.onnx.writing") == std::string::npos)
        return file_operations::create(path);
      errno = ENOSPC;
      return -1;
    }
  } files;
  write(true);
  const std::string model = read_bytes(folder / "out.onnx"),
                    data = read_bytes(folder / "out.onnx.data");
  values[1] = 77;
  EXPECT_THROW(write(true, files), failure);
  EXPECT_EQ(read_bytes(folder / "out.onnx"), model);
  EXPECT_EQ(read_bytes(folder / "out.onnx.data"), data);
  EXPECT_FALSE(std::filesystem::exists(folder / "out.onnx.data.writing"));
}

TEST_F(ExportTest, NothingIsLeftOfAFailure) {
  EXPECT_THROW(export_onnx(trainer_program, memory.places, folder / "template.onnx",
                           folder / "no/out.onnx", false, real_file_operations()),
               failure);
  folder.write("template.onnx", std::string("\x3a\x7f", 2));
  EXPECT_THROW(write(false), failure);
  EXPECT_FALSE(std::filesystem::exists(folder / "out.onnx"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out.onnx.writing"));
}

} // namespace
} // namespace trainc
