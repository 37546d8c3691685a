// SPDX-License-Identifier: Apache-2.0
//
// What a step is given besides batches: random numbers, the shuffle, learning rates,
// conversions.
#include "runtime/data/permutation.h"
#include "runtime/failure.h"
#include "runtime/files/conversion.h"
#include "runtime/options/schedule_rate.h"
#include "runtime/options/trainer_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace trainc {

extern const program trainer_program; // of toy_program.cpp

namespace {

TEST(Random, PhiloxKnownValues) {
  // From the authors' Random123 distribution, kat_vectors: philox4x32 10.
  EXPECT_EQ(philox(0, {0, 0, 0, 0}),
            (philox_words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
            (philox_words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, UniformLooksUniform) {
  double sum = 0, squares = 0;
  constexpr int count = 100000;
  for (uint64_t i = 0; i < count; ++i) {
    double value = random_uniform(7, random_stream::sampling, i);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / count, 0.5, 4 / std::sqrt(12.0 * count)); // four standard errors
  EXPECT_NEAR(squares / count, 1.0 / 3, 4 * 0.3 / std::sqrt(count));
}

TEST(Permutation, IsABijection) {
  for (uint64_t count : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 63u, 64u, 65u, 1000u, 4096u, 5001u})
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      permutation order(count, 11, epoch);
      std::vector<bool> seen(count);
      for (uint64_t i = 0; i < count; ++i) {
        uint64_t value = order(i);
        ASSERT_LT(value, count);
        ASSERT_FALSE(seen[value]);
        seen[value] = true;
      }
    }
}

TEST(Permutation, DependsOnSeedAndEpochAndMovesThings) {
  constexpr uint64_t count = 1000;
  permutation base(count, 1, 0), other_epoch(count, 1, 1), other_seed(count, 2, 0);
  int fixed = 0, same_epoch = 0, same_seed = 0;
  for (uint64_t i = 0; i < count; ++i) {
    fixed += base(i) == i;
    same_epoch += base(i) == other_epoch(i);
    same_seed += base(i) == other_seed(i);
  }
  EXPECT_LT(std::max({fixed, same_epoch, same_seed}), 10); // one each is expected
}

// How far a sum of squares (counted - expected)^2 / expected lies above its mean, in deviations.
// Times `factor` it is distributed as chi-square with so many degrees.
double excess(const std::vector<int64_t> &counts, double expected, double degrees,
              double factor = 1) {
  double sum = 0;
  for (int64_t count : counts) {
    double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  return (factor * sum - degrees) / std::sqrt(2 * degrees);
}

// Each of the n! orders equally often; all random numbers are those of one seed.
TEST(Permutation, OrdersOfTinySetsAreUniform) {
  for (uint64_t n = 1; n <= 6; ++n) {
    std::map<std::vector<uint64_t>, size_t> places;
    std::vector<uint64_t> order(n);
    std::iota(order.begin(), order.end(), uint64_t{0});
    do
      places.emplace(order, places.size());
    while (std::next_permutation(order.begin(), order.end()));
    constexpr int64_t each = 100;
    std::vector<int64_t> counts(places.size());
    for (uint64_t epoch = 0; epoch < each * places.size(); ++epoch) {
      permutation shuffle(n, 5, epoch);
      for (uint64_t i = 0; i < n; ++i)
        order[i] = shuffle(i);
      ++counts[places.at(order)];
    }
    if (n > 1) {
      EXPECT_LT(std::abs(excess(counts, each, static_cast<double>(counts.size() - 1))), 4) << n;
    }
  }
}

// Every value at every place, every distance between neighbours, and as many even orders as odd
// ones where there is a table.
TEST(Permutation, PlacesAndNeighboursAreUniform) {
  for (uint64_t n : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 64, 256, 257, 1024}) {
    uint64_t trials = std::max<uint64_t>(1000, 8 * n);
    std::vector<int64_t> at_place(n * n), distance(n);
    int64_t odd = 0;
    for (uint64_t epoch = 0; epoch < trials; ++epoch) {
      permutation shuffle(n, 6, epoch);
      std::vector<uint64_t> order;
      for (uint64_t i = 0; i < n; ++i) {
        order.push_back(shuffle(i));
        ++at_place[i * n + order[i]];
        ++distance[i == 0 ? 0 : (order[i] - order[i - 1] + n) % n];
      }
      int64_t inversions = 0;
      for (size_t i = 0; n <= 16 && i < n; ++i)
        for (size_t j = 0; j < i; ++j)
          inversions += order[j] > order[i];
      odd += inversions % 2;
    }
    auto total = static_cast<double>(trials), size = static_cast<double>(n);
    // Sums of rows and columns are fixed, hence the factor.
    double degrees = (size - 1) * (size - 1);
    EXPECT_LT(std::abs(excess(at_place, total / size, degrees, (size - 1) / size)), 4) << n;
    distance.erase(distance.begin());
    if (n > 2) {
      EXPECT_LT(std::abs(excess(distance, total, size - 2)), 4) << n;
    }
    if (n <= 16) { // four deviations
      EXPECT_LT(std::abs(static_cast<double>(odd) - total / 2), 2 * std::sqrt(total)) << n;
    }
  }
}

TEST(Permutation, HoldsForLargeCounts) {
  permutation order(uint64_t{1} << 40, 3, 9);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1000; ++i)
    seen.insert(order(i));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_LT(*seen.rbegin(), uint64_t{1} << 40);
}

// Numbers from torch.optim.lr_scheduler: CosineAnnealingLR(T_max=10, eta_min=0.1)
// and LinearLR(1, 0.1, total_iters=10) with a rate of 1.
TEST(Schedule, NumbersOfPyTorch) {
  rate_schedule cosine = {schedule_kind::cosine, 1.0, 0.1, 0, 10};
  EXPECT_DOUBLE_EQ(cosine(1), 1.0);
  EXPECT_NEAR(cosine(2), 0.9779754323328191, 1e-15);
  EXPECT_NEAR(cosine(4), 0.8145033635316129, 1e-15);
  EXPECT_NEAR(cosine(6), 0.55, 1e-15);
  EXPECT_NEAR(cosine(10), 0.1220245676671809, 1e-15);
  EXPECT_DOUBLE_EQ(cosine(11), 0.1);
  EXPECT_DOUBLE_EQ(cosine(100), 0.1);
  rate_schedule linear = {schedule_kind::linear, 1.0, 0.1, 0, 10};
  EXPECT_DOUBLE_EQ(linear(1), 1.0);
  EXPECT_NEAR(linear(6), 0.55, 1e-15);
  EXPECT_DOUBLE_EQ(linear(11), 0.1);
  rate_schedule warm = {schedule_kind::constant, 2.0, 0, 4, 0};
  EXPECT_DOUBLE_EQ(warm(1), 0.5);
  EXPECT_DOUBLE_EQ(warm(4), 2.0);
  EXPECT_DOUBLE_EQ(warm(1000), 2.0);
}

// What tests/models/make/schedule_reference.py recorded of torch.optim.lr_scheduler: 500 steps
// each.
TEST(Schedule, EverySchedulerOfPyTorch) {
  std::ifstream file(TRAINC_MODELS "/expected/schedules.json");
  auto recorded = nlohmann::json::parse(file);
  EXPECT_GE(recorded.size(), 10u);
  trainer_table table(trainer_program);
  for (auto &[name, entry] : recorded.items()) {
    std::vector<std::string> words = {"train", "--steps", "1"};
    for (auto &[option, value] : entry["options"].items()) {
      words.push_back("--" + option);
      words.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    std::vector<const char *> arguments;
    for (const std::string &word : words)
      arguments.push_back(word.c_str());
    trainer_options options = table.parse(static_cast<int>(arguments.size()), arguments.data());
    int64_t warmup = options.warmup_steps;
    rate_schedule schedule = schedule_of(options, warmup + 500);
    int64_t step = warmup;
    for (double rate : entry["rates"].get<std::vector<double>>()) {
      double found = schedule(++step);
      EXPECT_LE(std::abs(found - rate), 1e-12 * rate) << name << " " << step << " " << found;
    }
    EXPECT_EQ(step, warmup + 500);
    // Continuous where the warm-up ends, whatever its length.
    schedule.warmup_steps = 7;
    EXPECT_NEAR(schedule(7), schedule.peak, 1e-15);
    EXPECT_NEAR(schedule(8), schedule.peak, 1e-15);
  }
}

// What the rows of the options say of a command line.
static std::string problems_of(std::vector<const char *> arguments) {
  const trainer_table table(trainer_program);
  arguments.insert(arguments.end(), {"--steps", "50"});
  try {
    table.check(table.parse(static_cast<int>(arguments.size()), arguments.data()));
  } catch (const failure &error) {
    return error.message;
  }
  return "";
}

TEST(Schedule, OptionsThatAKindNeeds) {
  for (const char *kind : {"cosine-restarts", "warmup-stable-decay", "step", "exponential"})
    EXPECT_NE(problems_of({"train", "--schedule", kind}).find(std::string(kind) + " needs --"),
              std::string::npos)
        << kind;
}

// What the formula of each kind reads is what the table says, which checks and help follow.
TEST(Schedule, EachOptionMovesTheRateOfWhatReadsIt) {
  using options = trainer_options;
  const std::vector<std::pair<std::string, void (*)(options &)>> changes = {
      {"final-learning-rate", [](options &o) { o.final_learning_rate = 0.2; }},
      {"schedule-steps", [](options &o) { o.schedule_steps = 40; }},
      {"schedule-power", [](options &o) { o.schedule_power = 2; }},
      {"cycle-steps", [](options &o) { o.cycle_steps = 11; }},
      {"cycle-factor", [](options &o) { o.cycle_factor = 2; }},
      {"decay-steps", [](options &o) { o.decay_steps = 11; }},
      {"decay-every", [](options &o) { o.decay_every = 11; }},
      {"decay-factor", [](options &o) { o.decay_factor = 0.8; }}};
  auto rates = [](const options &from) {
    const rate_schedule schedule = schedule_of(from, 50);
    std::vector<double> all;
    for (int64_t step = 1; step <= 60; ++step)
      all.push_back(schedule(step));
    return all;
  };
  const char *arguments[] = {"train", "--learning-rate", "1"};
  options plain = trainer_table(trainer_program).parse(3, arguments);
  plain.final_learning_rate = 0.1;
  plain.cycle_steps = plain.decay_steps = plain.decay_every = 9;
  plain.decay_factor = 0.9;
  for (const word_row<schedule_kind> &row : schedule_words) {
    plain.schedule = row.value;
    for (const auto &[name, change] : changes) {
      options changed = plain;
      change(changed);
      EXPECT_EQ(rates(changed) != rates(plain), schedule_reads(row.value, name))
          << row.word << " " << name;
    }
  }
}

TEST(Schedule, OptionsThatAKindDoesNotRead) {
  EXPECT_EQ(problems_of({"train", "--final-learning-rate", "1e-4"}),
            "option --final-learning-rate: the schedule constant does not read it\n  try: "
            "--schedule linear|cosine|cosine-restarts|polynomial|warmup-stable-decay");
  EXPECT_NE(problems_of({"train", "--schedule", "linear", "--decay-factor", "0.5"}), "");
  const std::vector<std::vector<const char *>> unread = {
      {"schedule-steps", "9"}, {"schedule-power", "2"}, {"cycle-steps", "9"},
      {"cycle-factor", "2"},   {"decay-steps", "9"},    {"decay-every", "9"},
      {"decay-factor", "0.5"}};
  for (const auto &option : unread) {
    const std::string name = std::string("--") + option[0];
    EXPECT_NE(problems_of({"train", name.c_str(), option[1]}), "") << name;
    EXPECT_NE(problems_of({"train", "--schedule", "inverse-sqrt", name.c_str(), option[1]}), "")
        << name;
  }
  EXPECT_EQ(problems_of({"train", "--schedule", "polynomial", "--schedule-power", "2",
                         "--final-learning-rate", "1e-4", "--schedule-steps", "9"}),
            "");
  EXPECT_EQ(problems_of({"train", "--schedule", "cosine-restarts", "--cycle-steps", "9",
                         "--cycle-factor", "2", "--final-learning-rate", "1e-4"}),
            "");
}

TEST(Options, RangesOfHyperparameters) {
  trainer_table table(trainer_program);
  auto problem_of = [&](const char *option, const char *value) {
    const char *arguments[] = {"train", option, value};
    try {
      table.parse(3, arguments);
    } catch (const failure &error) {
      return error.message;
    }
    return std::string();
  };
  EXPECT_EQ(problem_of("--momentum", "0"), "");
  EXPECT_EQ(problem_of("--momentum", "-0.1"), "option --momentum: -0.1 is below 0");
  EXPECT_EQ(problem_of("--momentum", "1"), "option --momentum: 1 is not below 1");
  EXPECT_EQ(problem_of("--momentum", "inf"), "option --momentum: inf is not finite");
  EXPECT_EQ(problem_of("--weight-decay", "7"), "");
  EXPECT_EQ(problem_of("--weight-decay", "-inf"), "option --weight-decay: -inf is not finite");
  EXPECT_EQ(problem_of("--learning-rate", "inf"), "option --learning-rate: inf is not finite");
  EXPECT_EQ(problem_of("--clip-norm", "inf"), ""); // no clipping
}

TEST(Options, InputsWithEqualsSigns) {
  const input_place inputs[] = {
      {{"x", data_type::f32, 1, {4}, arena_kind::activations, 0}, false, 0, false, 0},
      {{"x=y", data_type::f32, 1, {4}, arena_kind::activations, 64}, false, 0, false, 0}};
  program program = trainer_program;
  program.inputs = inputs;
  auto expect = [&](const std::string &item, const std::string &name, const std::string &file,
                    const input_place *input) {
    const named_file found = named_file_of(program, item);
    EXPECT_EQ(found.name, name) << item;
    EXPECT_EQ(found.file, file) << item;
    EXPECT_EQ(found.input, input) << item;
  };
  expect("x=a.npy", "x", "a.npy", &inputs[0]);
  expect("x=y=a.npy", "x=y", "a.npy", &inputs[1]);
  expect("x=z=1/a.npy", "x", "z=1/a.npy", &inputs[0]);
  expect("u=a.npy", "u", "a.npy", nullptr);
  expect("a.npy", "", "a.npy", nullptr);
  expect("x=", "x", "", &inputs[0]);

  trainer_table table(program);
  const char *arguments[] = {"train", "--data", "x=y=a.npy", "--data", "x=b=1/a.npy"};
  const trainer_options options = table.parse(5, arguments);
  const std::string here = std::filesystem::current_path();
  for (const option_row *row : table.of_run(*options.command)) {
    if (row->name != "data")
      continue;
    EXPECT_EQ(table.kept_values(*row, options),
              (std::vector<std::string>{"x=y=" + here + "/a.npy", "x=" + here + "/b=1/a.npy"}));
  }
  for (const char *bad : {"x", "x=", "=a.npy", "x=y="}) {
    const char *words[] = {"train", "--data", bad};
    EXPECT_THROW(table.parse(3, words), failure) << bad;
  }
}

TEST(Conversion, OnlyWithoutLoss) {
  EXPECT_TRUE(converts_without_loss(file_type::u8, data_type::i64));
  EXPECT_TRUE(converts_without_loss(file_type::i32, data_type::i64));
  EXPECT_TRUE(converts_without_loss(file_type::u32, data_type::i64));
  EXPECT_TRUE(converts_without_loss(file_type::f32, data_type::f64));
  EXPECT_TRUE(converts_without_loss(file_type::i32, data_type::f64));
  EXPECT_TRUE(converts_without_loss(file_type::u16, data_type::f32));
  EXPECT_TRUE(converts_without_loss(file_type::boolean, data_type::boolean));
  EXPECT_TRUE(converts_without_loss(file_type::boolean, data_type::f32));
  EXPECT_FALSE(converts_without_loss(file_type::i64, data_type::i32));
  EXPECT_FALSE(converts_without_loss(file_type::u32, data_type::i32));
  EXPECT_FALSE(converts_without_loss(file_type::f64, data_type::f32));
  EXPECT_FALSE(converts_without_loss(file_type::i32, data_type::f32));
  EXPECT_FALSE(converts_without_loss(file_type::f32, data_type::i64));
  EXPECT_FALSE(converts_without_loss(file_type::u8, data_type::boolean));
  EXPECT_TRUE(converts_without_loss(file_type::f16, data_type::f32));
  EXPECT_TRUE(converts_without_loss(file_type::bf16, data_type::f64));
  EXPECT_FALSE(converts_without_loss(file_type::f16, data_type::i64));
}

TEST(Conversion, RoundsFloatsAlone) {
  EXPECT_TRUE(converts_by_rounding(file_type::f64, data_type::f32));
  EXPECT_TRUE(converts_by_rounding(file_type::bf16, data_type::f32));
  EXPECT_FALSE(converts_by_rounding(file_type::f64, data_type::i64));
  EXPECT_FALSE(converts_by_rounding(file_type::i32, data_type::f32));
  const uint16_t from[] = {0x3f80, 0xff80, 0x0001}; // 1, -infinity, a subnormal number
  float to[3];
  convert(file_type::bf16, from, data_type::f32, to, 3);
  EXPECT_EQ(to[0], 1);
  EXPECT_EQ(to[1], -INFINITY);
  EXPECT_EQ(to[2], 0x1p-133f);
}

} // namespace
} // namespace trainc
