// SPDX-License-Identifier: Apache-2.0
//
// A configuration that somebody or something has changed: whatever JSON its members are, a problem
// names the file and the member.
#include "runtime/failure.h"
#include "runtime/files/run_files.h"
#include "runtime/options/run_configuration.h"
#include "runtime/run/run_folder.h"
#include "tests/unit/file_faults.h"
#include "tests/unit/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trainc {

extern const program trainer_program; // of toy_program.cpp

namespace {

using nlohmann::ordered_json;

// As a run writes it.
ordered_json whole_configuration() {
  const ordered_json file = {{"input", "tokens"},
                             {"file", "text.bin"},
                             {"bytes", 100},
                             {"type", "uint8"},
                             {"digest", "12345678"}};
  return {{"format", "trainc run 1"},
          {"model", "toy"},
          {"optimizer", "sgd"},
          {"fingerprint", "0123456789abcdef"},
          {"graph", "01abc"},
          {"objective", "mse of output 0"},
          {"compiler", "0.1"},
          {"ranks", 2},
          {"data_order", 1},
          {"began_with",
           {{"checkpoint", "/elder"},
            {"initialise", "/a.safetensors"},
            {"rename", {"a=b", "c=d"}},
            {"bytes", 7},
            {"digest", "9abcdef0"}}},
          {"last_start",
           {{"date", "2026-01-02T03:04:05Z"},
            {"host", "here"},
            {"device", "2 threads"},
            {"command", {"out/trainer", "train"}}}},
          {"options", {{"steps", "3"}, {"micro-batches", 4}, {"tokens", {"text.bin"}}}},
          {"data", {file}},
          {"validation", {file}}};
}

std::string problem_of(const ordered_json &configuration) {
  scratch_folder folder;
  const std::string path = folder.write("configuration.json", configuration.dump());
  try {
    read_configuration(path);
  } catch (const failure &error) {
    EXPECT_EQ(error.code, exit_usage);
    EXPECT_EQ(error.message.rfind(path, 0), 0u) << error.message;
    return error.message;
  }
  return "";
}

TEST(RunConfiguration, SaysWhatTheFileDoes) {
  scratch_folder folder;
  const run_configuration read =
      read_configuration(folder.write("configuration.json", whole_configuration().dump()));
  EXPECT_TRUE(read.is_of_run);
  EXPECT_EQ(read.model, "toy");
  EXPECT_EQ(read.optimizer, "sgd");
  EXPECT_EQ(read.computed.objective, "mse of output 0");
  EXPECT_EQ(read.layout()->batches(), 8);
  EXPECT_EQ(read.data_order, 1);
  EXPECT_EQ(read.origin.checkpoint, "/elder");
  EXPECT_EQ(read.origin.parameters, "/a.safetensors");
  EXPECT_EQ(read.origin.content, (file_content{7, 0x9abcdef0u}));
  EXPECT_EQ(read.origin.renames, (std::vector<std::string>{"a=b", "c=d"}));
  EXPECT_EQ(read.option("steps"), "3");
  EXPECT_EQ(read.option("seed"), "");
  ASSERT_EQ(read.data->size(), 1u);
  EXPECT_EQ(read.data->front().bytes, 100);
  EXPECT_EQ(read.data->front().digest, 0x12345678u);
  EXPECT_EQ(read.validation->front().type, "uint8");
}

TEST(RunConfiguration, WhatIsNotSaidIsNotThere) {
  scratch_folder folder;
  const run_configuration read =
      read_configuration(folder.write("hand.json", R"({"options": {"steps": 3, "seed": null}})"));
  EXPECT_FALSE(read.is_of_run);
  EXPECT_FALSE(read.layout());
  EXPECT_FALSE(read.data);
  EXPECT_EQ(read.option("seed"), "");
  EXPECT_EQ(read.data_order, 0);
}

TEST(RunConfiguration, AMemberOfAnotherTypeIsNamed) {
  const std::vector<ordered_json> others = {0,
                                            -1,
                                            1.5,
                                            1e300,
                                            "",
                                            true,
                                            {{"a", 1}},
                                            ordered_json::array({ordered_json::array()}),
                                            ordered_json()};
  const ordered_json whole = whole_configuration();
  EXPECT_EQ(problem_of(whole), "");
  const std::vector<std::string> members = {"/format",
                                            "/model",
                                            "/optimizer",
                                            "/fingerprint",
                                            "/graph",
                                            "/objective",
                                            "/compiler",
                                            "/ranks",
                                            "/data_order",
                                            "/began_with",
                                            "/began_with/checkpoint",
                                            "/began_with/initialise",
                                            "/began_with/rename",
                                            "/began_with/rename/1",
                                            "/began_with/bytes",
                                            "/began_with/digest",
                                            "/last_start",
                                            "/last_start/date",
                                            "/last_start/host",
                                            "/last_start/device",
                                            "/last_start/command",
                                            "/data",
                                            "/data/0",
                                            "/data/0/input",
                                            "/data/0/file",
                                            "/data/0/bytes",
                                            "/data/0/type",
                                            "/data/0/digest",
                                            "/validation",
                                            "/validation/0/bytes"};
  for (const std::string &member : members)
    for (const ordered_json &other : others) {
      const ordered_json::json_pointer place(member);
      if (whole[place].type() == other.type() && other != -1)
        continue;
      const bool is_number = whole[place].is_number_integer();
      if (is_number && other == 0 && member != "/ranks")
        continue;
      ordered_json changed = whole;
      changed[place] = other;
      const std::string problem = problem_of(changed);
      EXPECT_NE(problem, "") << member << ": " << other.dump();
      std::string name = member.substr(1, member.find('/', 1) - 1);
      EXPECT_NE(problem.find("member '" + name), std::string::npos) << problem;
    }
}

TEST(RunConfiguration, ANumberBeyondItsLimitsIsRefused) {
  for (auto [member, value] :
       std::vector<std::pair<const char *, ordered_json>>{{"/data_order", -1},
                                                          {"/data_order", UINT64_MAX},
                                                          {"/ranks", int64_t(1) << 40},
                                                          {"/ranks", -3},
                                                          {"/data/0/bytes", UINT64_MAX},
                                                          {"/data/0/share", 10001},
                                                          {"/data/0/digest", "xyz"},
                                                          {"/data/0/digest", "123456789"}}) {
    ordered_json changed = whole_configuration();
    changed[ordered_json::json_pointer(member)] = value;
    EXPECT_NE(problem_of(changed), "") << member << ": " << value.dump();
  }
}

TEST(RunConfiguration, AFileWithoutItsDigestIsNamed) {
  ordered_json changed = whole_configuration();
  changed["data"][0].erase("digest");
  EXPECT_NE(problem_of(changed).find("member 'data[0].digest' is missing"), std::string::npos);
}

TEST(RunConfiguration, ARunMayNotSayWhatItBeganWithHad) { // one that is older
  ordered_json changed = whole_configuration();
  changed["began_with"].erase("bytes");
  EXPECT_NE(problem_of(changed).find("member 'began_with.bytes' is missing"), std::string::npos);
  changed["began_with"].erase("digest");
  scratch_folder folder;
  const run_configuration read =
      read_configuration(folder.write("configuration.json", changed.dump()));
  EXPECT_EQ(read.origin.parameters, "/a.safetensors");
  EXPECT_FALSE(read.origin.content);
}

TEST(RunConfiguration, AnUnknownMemberInsideIsNamed) {
  for (const char *inside : {"data[0]", "validation[0]", "began_with"}) {
    ordered_json changed = whole_configuration();
    const std::string member = std::string(inside).substr(0, std::string(inside).find('['));
    (member == inside ? changed[member] : changed[member][0])["bites"] = 3;
    const std::string problem = problem_of(changed);
    EXPECT_NE(problem.find(std::string("unknown member '") + inside + ".bites'"), std::string::npos)
        << problem;
  }
}

TEST(RunConfiguration, ANameThatIsThereTwiceIsNamed) {
  for (const char *text : {R"({"options": {}, "model": "a", "model": "b"})",
                           R"({"options": {"model": 1, "model": 2}})",
                           R"({"options": {}, "data": [{"model": 1, "model": 2}]})"}) {
    scratch_folder folder;
    try {
      read_configuration(folder.write("hand.json", text));
      ADD_FAILURE() << text;
    } catch (const failure &error) {
      EXPECT_NE(error.message.find("hand.json: 'model' is there twice"), std::string::npos)
          << error.message;
    }
  }
}

TEST(RunConfiguration, OneThatIsTooLargeNamesTheLimit) {
  scratch_folder folder;
  const std::string path = folder.write("configuration.json", "{}");
  std::filesystem::resize_file(path, (16 << 20) + 1);
  try {
    read_configuration(path);
    ADD_FAILURE();
  } catch (const failure &error) {
    EXPECT_NE(error.message.find("has 16777217 bytes, expected at most 16777216"),
              std::string::npos)
        << error.message;
  }
  EXPECT_FALSE(is_configuration_of_run(path));
}

TEST(RunConfiguration, IsOfARunWithItsFormat) {
  scratch_folder folder;
  auto is_of_run = [&](const std::string &text) {
    return is_configuration_of_run(folder.write("configuration.json", text));
  };
  EXPECT_FALSE(is_configuration_of_run(folder / "nowhere.json"));
  EXPECT_TRUE(is_of_run(whole_configuration().dump()));
  EXPECT_TRUE(is_of_run(R"({"format": "trainc run 1"})")); // whatever else is wrong with it
  for (const char *text : {"", "{", "[]", "{}", R"({"options": {}})", R"({"format": 1})",
                           R"({"format": "trainc run 2"})", R"(["trainc run 1"])"})
    EXPECT_FALSE(is_of_run(text)) << text;
}

TEST(RunConfiguration, WhatIsWrittenIsReadBack) {
  const trainer_table table(trainer_program);
  const char *words[] = {"train", "--steps", "3", "--tokens", "/a.bin", "--no-shuffle"};
  const trainer_options options = table.parse(std::size(words), words);
  run_facts facts;
  facts.layout = {2, 4};
  facts.data = {{"tokens", "/a.bin", 100, 0x1234u, 2500, "uint8"},
                {"tokens", "/b.bin", 7, 0, 0, ""}};
  facts.validation = {{"x", "/c.npy", 1, 0xffffffffu, 0, "float32"}};
  facts.data_order = 5;
  facts.seed = UINT64_MAX;
  facts.origin = {"/elder", "/a.safetensors", file_content{INT64_MAX, 0x5u}, {"a=b", "c="}};
  facts.start = {"2026-01-02T03:04:05Z", "here", "2 threads", {"trainer", "--prompt", "\xff"}};
  scratch_folder folder;
  const std::string text = configuration_text(trainer_program, table, options, facts);
  const run_configuration read = read_configuration(folder.write("configuration.json", text));
  const ordered_json start = ordered_json::parse(text)["last_start"];
  EXPECT_EQ(start["date"], facts.start.date);
  EXPECT_EQ(start["host"], facts.start.host);
  EXPECT_EQ(start["device"], facts.start.device);
  EXPECT_EQ(start["command"][1], "--prompt");
  EXPECT_TRUE(read.is_of_run);
  EXPECT_EQ(read.model, trainer_program.model_name);
  EXPECT_EQ(read.optimizer, trainer_program.optimizer_name);
  EXPECT_EQ(read.computed.graph_digest, trainer_program.graph_digest);
  EXPECT_EQ(read.computed.objective, trainer_program.objective);
  EXPECT_EQ(read.layout()->ranks, 2);
  EXPECT_EQ(read.layout()->micro_batches, 4);
  EXPECT_EQ(read.data_order, 5);
  EXPECT_EQ(read.option("seed"), std::to_string(UINT64_MAX));
  EXPECT_EQ(read.option("steps"), "3");
  EXPECT_EQ(read.option("tokens"), "/a.bin");
  EXPECT_EQ(read.option("no-shuffle"), "yes");
  EXPECT_EQ(read.option("mean-per-batch"), "");
  EXPECT_EQ(read.origin.checkpoint, "/elder");
  EXPECT_EQ(read.origin.parameters, "/a.safetensors");
  EXPECT_EQ(read.origin.content, facts.origin.content);
  EXPECT_EQ(read.origin.renames, facts.origin.renames);
  auto check = [](const std::vector<data_identity> &now, const std::vector<data_identity> &before) {
    ASSERT_EQ(now.size(), before.size());
    for (size_t i = 0; i < now.size(); ++i) {
      EXPECT_EQ(now[i].input, before[i].input);
      EXPECT_EQ(now[i].path, before[i].path);
      EXPECT_EQ(now[i].bytes, before[i].bytes);
      EXPECT_EQ(now[i].digest, before[i].digest);
      EXPECT_EQ(now[i].share, before[i].share);
      EXPECT_EQ(now[i].type, before[i].type);
    }
  };
  check(*read.data, facts.data);
  check(*read.validation, facts.validation);
}

TEST(RunConfiguration, EveryProblemIsSaid) {
  ordered_json changed = whole_configuration();
  changed["model"] = 0;
  changed["data_order"] = -2;
  const std::string problem = problem_of(changed);
  EXPECT_NE(problem.find("member 'model' is 0, expected text"), std::string::npos) << problem;
  EXPECT_NE(problem.find("member 'data_order' is -2, expected a whole number from 0"),
            std::string::npos)
      << problem;
}

// Whatever call fails, the run has the configuration that it had, and the next try succeeds.
TEST(RunConfiguration, IsAsItWasWhereTheDiskFails) {
  const trainer_table table(trainer_program);
  const char *words[] = {"train", "--steps", "3"};
  trainer_options options = table.parse(std::size(words), words);
  scratch_folder folder;
  faulty_operations files;
  run_folder run(folder / "toy", false, files);
  const std::string path = configuration_of(folder / "toy");
  auto write = [&] {
    run.write_configuration(configuration_text(trainer_program, table, options, run_facts()));
  };
  write();
  const std::string before = read_bytes(path);
  options.steps = 4;
  files.calls = 0;
  for (files.failing = 0; files.failing < 5; ++files.failing, files.calls = 0) {
    try {
      write();
      ADD_FAILURE() << "call " << files.failing << " was not made";
    } catch (const failure &error) {
      EXPECT_EQ(error.code, exit_disk);
      EXPECT_EQ(error.message.rfind(path, 0), 0u) << error.message;
    }
    EXPECT_EQ(read_bytes(path), before) << "call " << files.failing;
  }
  std::filesystem::remove(path);
  files.failing = 0;
  EXPECT_THROW(run.bring_back(), failure);
  EXPECT_EQ(run.bring_back(), path); // the one that was to be written last
  EXPECT_EQ(read_configuration(path).option("steps"), "4");
  EXPECT_EQ(run.bring_back(), "");
}

} // namespace
} // namespace trainc
