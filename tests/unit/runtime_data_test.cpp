// SPDX-License-Identifier: Apache-2.0
//
// What a step is given: random numbers, the shuffle, learning rates, and batches
// from files.
#include "npy_bytes.h"
#include "runtime/conversion.h"
#include "runtime/failure.h"
#include "runtime/loader.h"
#include "runtime/options.h"
#include "runtime/permutation.h"
#include "runtime/schedule_rate.h"
#include "scratch_folder.h"

#include <algorithm>
#include <cmath>
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
    double degrees =
        (size - 1) * (size - 1); // sums of rows and columns are fixed, hence the factor
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

// What tests/models/schedule_reference.py recorded of torch.optim.lr_scheduler: 500 steps each.
TEST(Schedule, EverySchedulerOfPyTorch) {
  std::ifstream file(TRAINC_MODELS "/expected/schedules.json");
  auto recorded = nlohmann::json::parse(file);
  EXPECT_GE(recorded.size(), 10u);
  option_table table(trainer_program);
  for (auto &[name, entry] : recorded.items()) {
    std::vector<std::string> words = {"train", "--steps", "1"};
    for (auto &[option, value] : entry["options"].items()) {
      words.push_back("--" + option);
      words.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    std::vector<const char *> arguments;
    for (const std::string &word : words)
      arguments.push_back(word.c_str());
    settings options = table.parse(static_cast<int>(arguments.size()), arguments.data());
    int64_t warmup = options.integer("warmup-steps");
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

TEST(Schedule, OptionsThatAKindNeeds) {
  option_table table(trainer_program);
  for (const char *kind : {"cosine-restarts", "warmup-stable-decay", "step", "exponential"}) {
    const char *arguments[] = {"train", "--schedule", kind};
    problem_list problems;
    check_schedule(table.parse(3, arguments), problems);
    EXPECT_FALSE(problems.empty()) << kind;
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
}

// A model with two inputs: x [2, 3] f32 and labels [2] i64 below 10 or -100.
struct small_model {
  input_place inputs[2] = {
      {{"x", data_type::f32, 2, {2, 3}, arena_kind::activations, 0}, false, 0, false, 0},
      {{"labels", data_type::i64, 1, {2}, arena_kind::activations, 64}, true, 10, true, -100}};
  program prog = {};
  alignas(64) char memory[128] = {};
  arenas places = {};
  scratch_folder folder;

  small_model() {
    prog.inputs = inputs;
    prog.input_count = 2;
    places.base[static_cast<int>(arena_kind::activations)] = memory;
  }
  loader::input_target target() {
    return [this](const tensor_place &place) { return places[place.arena] + place.offset; };
  }
  float *x() { return reinterpret_cast<float *>(memory); }
  int64_t *labels() { return reinterpret_cast<int64_t *>(memory + 64); }

  data_request request(int64_t samples) {
    std::vector<float> values(static_cast<size_t>(samples * 3));
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<uint8_t> classes;
    for (int64_t i = 0; i < samples; ++i)
      classes.push_back(static_cast<uint8_t>(i % 10));
    data_request result;
    result.data = {
        "x=" + folder.write("x.npy", npy_array("<f4", std::to_string(samples) + ", 3", values)),
        "labels=" +
            folder.write("l.npy", npy_array("|u1", std::to_string(samples) + ",", classes))};
    return result;
  }

  std::string problem(const data_request &request) {
    try {
      loader data(prog, request);
      data.check_values(0, 1);
      data.batches(data_part::all);
    } catch (const failure &error) {
      EXPECT_EQ(error.code, exit_data);
      return error.message;
    }
    return "";
  }
};

TEST(Loader, TakesSlicesInOrderAndBeginsAgain) {
  small_model model;
  loader data(model.prog, model.request(7));
  EXPECT_EQ(data.samples_per_batch(), 2);
  EXPECT_EQ(data.batches(data_part::all), 3);
  EXPECT_EQ(data.left_out(data_part::all), 1);
  for (int64_t batch : {0, 2, 1, 3, 7}) {
    data.load(data_part::all, batch, model.target());
    EXPECT_EQ(model.x()[0], static_cast<float>(batch % 3 * 6));
    EXPECT_EQ(model.x()[5], static_cast<float>(batch % 3 * 6 + 5));
    EXPECT_EQ(model.labels()[1], batch % 3 * 2 + 1);
  }
}

TEST(Loader, ShufflesSamplesWithTheirLabels) {
  small_model model;
  data_request request = model.request(20);
  request.shuffle = true;
  request.seed = 5;
  loader data(model.prog, request);
  std::vector<int64_t> first_epoch;
  for (int64_t batch = 0; batch < 10; ++batch) {
    data.load(data_part::training, batch, model.target());
    for (int row = 0; row < 2; ++row) {
      auto sample = static_cast<int64_t>(model.x()[row * 3]) / 3;
      EXPECT_EQ(model.labels()[row], sample % 10);
      first_epoch.push_back(sample);
    }
  }
  EXPECT_FALSE(std::is_sorted(first_epoch.begin(), first_epoch.end()));
  data.load(data_part::training, 3, model.target());
  EXPECT_EQ(static_cast<int64_t>(model.x()[0]) / 3, first_epoch[6]); // a function of the number
  std::sort(first_epoch.begin(), first_epoch.end());
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(first_epoch[static_cast<size_t>(i)], i); // each once
}

TEST(Loader, HoldsOutTheEnd) {
  small_model model;
  data_request request = model.request(20);
  request.holdout = 0.2;
  loader data(model.prog, request);
  EXPECT_EQ(data.batches(data_part::training), 8);
  EXPECT_EQ(data.batches(data_part::held_out), 2);
  data.load(data_part::held_out, 0, model.target());
  EXPECT_EQ(model.x()[0], 48.0f);
}

TEST(Loader, FillsUpALastBatchWithIgnoredLabels) {
  small_model model;
  model.prog.loss_weight.name = "loss_weight";
  data_request request = model.request(7);
  request.partial_batches = true;
  loader data(model.prog, request);
  EXPECT_EQ(data.batches(data_part::all), 4);
  EXPECT_EQ(data.batches(data_part::training), 3);
  EXPECT_EQ(data.left_out(data_part::all), 0);
  EXPECT_EQ(data.samples_in(data_part::all, 2), 2);
  EXPECT_EQ(data.samples_in(data_part::all, 3), 1);
  data.load(data_part::all, 3, model.target());
  EXPECT_EQ(model.labels()[0], 6);
  EXPECT_EQ(model.labels()[1], -100);
  EXPECT_EQ(model.x()[3], 18.0f);        // the last sample again
  model.prog.loss_weight.name = nullptr; // all labels count: a row more would be part of the mean
  EXPECT_EQ(loader(model.prog, request).batches(data_part::all), 3);
  model.prog.sample_losses = {"sample_losses", data_type::f32, 1, {2}, arena_kind::activations, 0};
  EXPECT_EQ(loader(model.prog, request).batches(data_part::all), 4);
  model.prog.sample_losses.shape[0] = 4; // of other rows than samples
  EXPECT_EQ(loader(model.prog, request).batches(data_part::all), 3);
}

// Random numbers of samples, ranks, micro-batches and held-out parts: an epoch of training takes
// no sample twice and leaves out less than a batch, an evaluation takes each once.
TEST(Loader, VisitsEachSampleOnce) {
  for (uint64_t trial = 0; trial < 50; ++trial) {
    auto draw = [&, at = uint32_t{0}](int64_t low, int64_t high) mutable {
      uint64_t bits = random_bits(11, random_stream::sampling, trial, at++);
      return low + static_cast<int64_t>(bits % static_cast<uint64_t>(high - low + 1));
    };
    small_model model;
    int64_t batch = draw(1, 5), ranks = draw(1, 4), micro_batches = draw(1, 3);
    model.inputs[0].tensor.shape[0] = model.inputs[1].tensor.shape[0] = batch;
    model.prog.loss_weight.name = "loss_weight";
    data_request request = model.request(draw(2 * batch, 60));
    request.holdout = static_cast<double>(draw(0, 4)) / 10;
    request.shuffle = draw(0, 1) != 0;
    request.seed = trial;
    request.partial_batches = true;
    loader data(model.prog, request);
    auto take = [&](data_part part, int64_t number, std::vector<int64_t> &visits) {
      data.load(part, number, model.target());
      for (int64_t row = 0; row < data.samples_in(part, number); ++row)
        ++visits[static_cast<size_t>(model.x()[row * 3]) / 3];
      for (int64_t row = data.samples_in(part, number); row < batch; ++row)
        EXPECT_EQ(model.labels()[row], -100);
    };
    auto all = static_cast<size_t>(data.samples(data_part::all));
    auto trained = static_cast<size_t>(data.samples(data_part::training));

    // Steps of all ranks, as gradient_step deals batches out, over two epochs and a rest.
    int64_t per_epoch = data.batches(data_part::training);
    std::vector<std::vector<int64_t>> epochs(3 + ranks * micro_batches, std::vector<int64_t>(all));
    for (int64_t first = 0; first < 2 * per_epoch; first += ranks * micro_batches)
      for (int64_t j = 0; j < micro_batches; ++j)
        for (int64_t rank = 0; rank < ranks; ++rank) {
          int64_t number = first + j * ranks + rank;
          take(data_part::training, number, epochs[static_cast<size_t>(number / per_epoch)]);
        }
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      int64_t taken = std::accumulate(epochs[epoch].begin(), epochs[epoch].end(), int64_t{0});
      EXPECT_EQ(taken, static_cast<int64_t>(trained) / batch * batch) << trial;
      EXPECT_LE(*std::max_element(epochs[epoch].begin(), epochs[epoch].end()), 1) << trial;
      for (size_t i = trained; i < all; ++i)
        EXPECT_EQ(epochs[epoch][i], 0) << trial;
    }
    for (data_part part : {data_part::all, data_part::held_out}) {
      if (data.samples(part) == 0)
        continue;
      std::vector<int64_t> visits(all);
      for (int64_t number = 0; number < data.batches(part); ++number)
        take(part, number, visits);
      for (size_t i = 0; i < all; ++i)
        EXPECT_EQ(visits[i], part == data_part::all || i >= trained) << trial << " " << i;
    }
  }
}

TEST(Loader, NamesEveryProblemAtOnce) {
  small_model model;
  data_request request = model.request(4);
  request.data = {
      "x=" + model.folder.write("d.npy", npy_array<double>("<f8", "4, 2", std::vector<double>(8))),
      "pixels=" + model.folder / "nowhere.npy"};
  std::string problem = model.problem(request);
  for (const char *words : {"dtype float64, expected float32", "array.astype(numpy.float32)",
                            "shape [4, 2], expected [samples, 3]", "no input 'pixels'",
                            "no data for input 'labels' (int64 [2])", "--data labels=FILE.npy"})
    EXPECT_NE(problem.find(words), std::string::npos) << words << "\n" << problem;
}

TEST(Loader, RefusesDifferentCountsAndTooFewSamples) {
  small_model model;
  data_request request = model.request(4);
  std::string four = request.data[0];
  std::filesystem::copy_file(model.folder / "x.npy", model.folder / "four.npy");
  request = model.request(5);
  request.data[0] = "x=" + model.folder / "four.npy";
  EXPECT_NE(model.problem(request).find("has 5 samples, but"), std::string::npos);
  EXPECT_NE(model.problem(model.request(1)).find("one batch needs 2"), std::string::npos);
}

TEST(Loader, FindsIndexesOutOfRange) {
  small_model model;
  data_request request = model.request(4);
  auto labels = [&](std::vector<int64_t> values) {
    request.data[1] = "labels=" + model.folder.write("l.npy", npy_array("<i8", "4,", values));
    return model.problem(request);
  };
  EXPECT_EQ(labels({0, 9, -100, 3}), "");
  std::string problem = labels({0, 9, 10, 3});
  EXPECT_NE(problem.find("l.npy: input 'labels': value 10 at element 2 (byte 144)"),
            std::string::npos)
      << problem;
  EXPECT_NE(labels({0, -1, 1, 3}).find("value -1 at element 1"), std::string::npos);
  // A file that changes after the check is caught when the batch is read.
  labels({0, 0, 0, 0});
  loader data(model.prog, request);
  data.check_values(0, 1);
  model.folder.write("l.npy", npy_array<int64_t>("<i8", "4,", {0, 0, 99, 0}));
  data.load(data_part::all, 0, model.target());
  EXPECT_THROW(data.load(data_part::all, 1, model.target()), failure);
}

// tokens [2, 4] and labels [2, 4] of a vocabulary of 100.
struct token_model {
  input_place inputs[2] = {
      {{"tokens", data_type::i64, 2, {2, 4}, arena_kind::activations, 0}, false, 100, false, 0},
      {{"labels", data_type::i64, 2, {2, 4}, arena_kind::activations, 64}, true, 100, true, -100}};
  program prog = {};
  alignas(64) int64_t memory[16] = {};
  arenas places = {};
  scratch_folder folder;

  token_model() {
    prog.inputs = inputs;
    prog.input_count = 2;
    places.base[static_cast<int>(arena_kind::activations)] = reinterpret_cast<char *>(memory);
  }
  loader::input_target target() {
    return [this](const tensor_place &place) { return places[place.arena] + place.offset; };
  }
  data_request request(int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i)
      bytes += static_cast<char>(i);
    data_request result;
    result.tokens = folder.write("t.bin", bytes);
    return result;
  }
};

TEST(Tokens, WindowsWithLabelsShiftedByOne) {
  token_model model;
  loader data(model.prog, model.request(18)); // four windows need 17 tokens
  EXPECT_EQ(data.batches(data_part::all), 2);
  EXPECT_EQ(data.tokens_per_batch(), 8);
  data.load(data_part::all, 1, model.target());
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(model.memory[i], 8 + i);
    EXPECT_EQ(model.memory[8 + i], 9 + i);
  }
  EXPECT_EQ(loader(model.prog, model.request(17)).batches(data_part::all), 2);
  EXPECT_EQ(loader(model.prog, model.request(16)).batches(data_part::all), 1);
  EXPECT_THROW(loader(model.prog, model.request(8)).batches(data_part::all), failure);
}

TEST(Tokens, ShuffledWindowsStayInTheirPart) {
  token_model model;
  data_request request = model.request(99);
  request.shuffle = true;
  request.holdout = 0.25;
  loader data(model.prog, request);
  int64_t batches = data.batches(data_part::training), kept = 99 - 24;
  std::set<int64_t> offsets;
  for (int64_t batch = 0; batch < 20 * batches; ++batch) {
    data.load(data_part::training, batch, model.target());
    for (int64_t i = 0; i < 8; ++i) {
      EXPECT_LT(model.memory[8 + i], kept);
      EXPECT_EQ(model.memory[8 + i], model.memory[i] + 1);
    }
    offsets.insert(model.memory[0] % 4);
  }
  EXPECT_EQ(offsets.size(), 4u); // windows begin elsewhere in other epochs
}

TEST(Tokens, ReadsArraysAndRefusesBeyondTheVocabulary) {
  token_model model;
  std::vector<uint16_t> values(40, 3);
  data_request request;
  request.tokens = model.folder.write("t.npy", npy_array("<u2", "40,", values));
  EXPECT_EQ(loader(model.prog, request).batches(data_part::all), 4);
  values[30] = 100;
  model.folder.write("t.npy", npy_array("<u2", "40,", values));
  try {
    loader(model.prog, request).check_values(0, 1);
    FAIL();
  } catch (const failure &error) {
    EXPECT_NE(error.message.find("value 100 at element 30"), std::string::npos) << error.message;
  }
  model.folder.write("t.npy", npy_array("<u2", "20, 2", values));
  EXPECT_THROW(loader(model.prog, request), failure);
  model.folder.write("t.npy", npy_array<float>("<f4", "2,", {1, 2}));
  EXPECT_THROW(loader(model.prog, request), failure);
}

} // namespace
} // namespace trainc
