// SPDX-License-Identifier: Apache-2.0
//
// Batches from files: which samples they hold, and what is refused.
#include "runtime/data/loader.h"
#include "runtime/failure.h"
#include "tests/unit/npy_bytes.h"
#include "tests/unit/scratch_folder.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace trainc {
namespace {

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

// Random numbers of samples, ranks, micro-batches, held-out parts and policies for what fills no
// batch: an epoch of training takes each sample once, unless it leaves out less than a batch; an
// evaluation takes each once.
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
    request.rest = static_cast<leftovers>(draw(0, 2));
    loader data(model.prog, request);
    // Samples of a batch, and the ignored rows that fill it up.
    auto take = [&](data_part part, int64_t number) {
      data.load(part, number, model.target());
      std::vector<size_t> samples;
      for (int64_t row = 0; row < data.samples_in(part, number); ++row)
        samples.push_back(static_cast<size_t>(model.x()[row * 3]) / 3);
      for (int64_t row = data.samples_in(part, number); row < batch; ++row)
        EXPECT_EQ(model.labels()[row], -100);
      return samples;
    };
    auto trained = static_cast<size_t>(data.samples(data_part::training));

    // Steps of all ranks, as gradient_step deals batches out, until two epochs are over.
    std::vector<size_t> taken;
    auto enough = static_cast<int64_t>(std::ceil(2 * data.batches_per_epoch()));
    for (int64_t first = 0; first < enough; first += ranks * micro_batches)
      for (int64_t j = 0; j < micro_batches; ++j)
        for (int64_t rank = 0; rank < ranks; ++rank) {
          std::vector<size_t> samples = take(data_part::training, first + j * ranks + rank);
          taken.insert(taken.end(), samples.begin(), samples.end());
        }
    bool drops = request.rest == leftovers::drop;
    size_t per_epoch =
        drops ? trained / static_cast<size_t>(batch) * static_cast<size_t>(batch) : trained;
    EXPECT_EQ(data.left_out(data_part::training), static_cast<int64_t>(trained - per_epoch));
    ASSERT_GE(taken.size(), 2 * per_epoch) << trial;
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      auto begin = taken.begin() + static_cast<std::ptrdiff_t>(epoch * per_epoch);
      std::set<size_t> seen(begin, begin + static_cast<std::ptrdiff_t>(per_epoch));
      EXPECT_EQ(seen.size(), per_epoch) << trial;
      EXPECT_LT(*seen.rbegin(), trained) << trial;
    }
    for (data_part part : {data_part::all, data_part::held_out}) {
      std::vector<size_t> visits;
      for (int64_t number = 0; data.samples(part) > 0 && number < data.batches(part); ++number)
        for (size_t sample : take(part, number))
          visits.push_back(sample);
      std::vector<size_t> each(static_cast<size_t>(data.samples(part)));
      std::iota(each.begin(), each.end(), part == data_part::all ? 0 : trained);
      EXPECT_EQ(visits, each) << trial;
    }
  }
}

TEST(Loader, LeftoversNeedAMaskOrGoOn) {
  small_model model;
  data_request request = model.request(7);
  request.rest = leftovers::pad;
  try {
    loader data(model.prog, request);
    FAIL();
  } catch (const failure &error) {
    EXPECT_EQ(error.code, exit_usage);
    EXPECT_NE(error.message.find("--leftovers pad"), std::string::npos) << error.message;
  }
  request.rest = leftovers::wrap;
  loader data(model.prog, request);
  EXPECT_EQ(data.batches_per_epoch(), 3.5);
  data.load(data_part::training, 3, model.target());
  EXPECT_EQ(model.labels()[0], 6);
  EXPECT_EQ(model.labels()[1], 0); // of the next epoch
  // Resumed with batches of another size, at the same sample.
  EXPECT_EQ(data.batch_after(3, 4), 6);
  model.prog.loss_weight.name = "loss_weight";
  request.rest = leftovers::pad;
  EXPECT_EQ(loader(model.prog, request).batches_per_epoch(), 4);
  EXPECT_EQ(loader(model.prog, request).batch_after(7, 1), 4); // an epoch of seven
}

TEST(Loader, NamesEveryProblemAtOnce) {
  small_model model;
  data_request request = model.request(4);
  request.data = {"x=" + model.folder.write(
                             "i.npy", npy_array<int64_t>("<i8", "4, 2", std::vector<int64_t>(8))),
                  "pixels=" + model.folder / "nowhere.npy"};
  std::string problem = model.problem(request);
  for (const char *words : {"dtype int64, expected float32", "array.astype(numpy.float32)",
                            "shape [4, 2], expected [samples, 3]", "no input 'pixels'",
                            "no data for input 'labels' (int64 [2])", "--data labels=FILE.npy"})
    EXPECT_NE(problem.find(words), std::string::npos) << words << "\n" << problem;
}

std::string not_finite(const loader &data) {
  try {
    data.check_finite(0, 1);
  } catch (const failure &error) {
    return error.message;
  }
  return "";
}

TEST(Loader, ConvertsFloatsOfOtherWidthsAndSaysSo) {
  small_model model;
  data_request request = model.request(2);
  const std::string labels = request.data[1];
  request.data = {
      "x=" + model.folder.write("wide.npy",
                                npy_array<double>("<f8", "2, 3", {1, 0.1, -2, 1e300, 4, 5})),
      labels};
  loader wide(model.prog, request);
  EXPECT_EQ(wide.notes(),
            std::vector<std::string>{model.folder / "wide.npy: float64, converted to float32"});
  wide.load(data_part::training, 0, model.target());
  EXPECT_EQ(model.x()[1], 0.1f);
  EXPECT_NE(not_finite(wide).find(
                "wide.npy: input 'x': a value of sample 1 is NaN or infinite: element 3"),
            std::string::npos);
  // 1, the least subnormal number, -2, the largest number, 0.333, -0.
  request.data[0] =
      "x=" + model.folder.write(
                 "half.npy",
                 npy_array<uint16_t>("<f2", "2, 3", {0x3c00, 1, 0xc000, 0x7bff, 0x3555, 0x8000}));
  loader half(model.prog, request);
  EXPECT_EQ(half.notes().at(0), model.folder / "half.npy: float16, converted to float32");
  half.load(data_part::training, 0, model.target());
  EXPECT_EQ(std::vector<float>(model.x(), model.x() + 6),
            (std::vector<float>{1, 0x1p-24f, -2, 65504, 0.333251953125f, -0.0f}));
  EXPECT_EQ(not_finite(half), "");
  request.data[0] =
      "x=" + model.folder.write("infinite.npy",
                                npy_array<uint16_t>("<f2", "2, 3", {0, 0, 0, 0, 0xfc00, 0}));
  EXPECT_NE(not_finite(loader(model.prog, request)).find("of sample 1"), std::string::npos);
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
    result.tokens = {folder.write("t.bin", bytes)};
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
  request.tokens = {model.folder.write("t.npy", npy_array("<u2", "40,", values))};
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

TEST(Loader, TellsConstantsFromSamplesByTheirShape) {
  small_model model; // x [2, 3] and a mask [5, 3], whose first axis is the longer one
  model.inputs[1] = {
      {"mask", data_type::f32, 2, {5, 3}, arena_kind::activations, 64}, false, 0, false, 0};
  data_request request = model.request(9);
  std::vector<float> ones(15, 1.0f);
  std::string mask = model.folder.write("mask.npy", npy_array("<f4", "5, 3", ones));
  request.data[1] = "mask=" + mask;
  loader data(model.prog, request);
  EXPECT_EQ(data.samples_per_batch(), 2);
  EXPECT_EQ(data.samples(data_part::all), 9);
  for (int64_t batch : {0, 3}) {
    data.load(data_part::all, batch, model.target());
    EXPECT_EQ(model.x()[0], static_cast<float>(6 * batch));
    EXPECT_EQ(reinterpret_cast<float *>(model.memory + 64)[14], 1.0f);
  }
  // With as many rows as a batch it looks like samples, unless it is said.
  model.inputs[1].tensor.shape[0] = 2;
  ones.resize(6);
  model.folder.write("mask.npy", npy_array("<f4", "2, 3", ones));
  EXPECT_NE(model.problem(request).find("has 2 samples, but"), std::string::npos);
  request.data.pop_back();
  request.constants = {"mask=" + mask};
  EXPECT_EQ(model.problem(request), "");
  EXPECT_EQ(loader(model.prog, request).samples(data_part::all), 9);
  ones.resize(3);
  model.folder.write("mask.npy", npy_array("<f4", "1, 3", ones));
  EXPECT_NE(model.problem(request).find("shape [1, 3], expected [2, 3]"), std::string::npos);
}

// The first token of a window says which file it is from and where.
struct three_files : token_model {
  data_request request;
  three_files() {
    for (int64_t file = 0; file < 3; ++file) {
      std::string bytes;
      for (int64_t i = 0; i < 4 * (3 + file) + 1; ++i) // 3, 4 and 5 windows
        bytes += static_cast<char>(30 * file + i);
      request.tokens.push_back(folder.write(std::to_string(file) + ".bin", bytes));
    }
  }
  std::vector<int64_t> firsts(loader &data, data_part part, int64_t batches) {
    std::vector<int64_t> result;
    for (int64_t batch = 0; batch < batches; ++batch) {
      data.load(part, batch, target());
      for (int64_t row = 0; row < data.samples_in(part, batch); ++row) {
        result.push_back(memory[4 * row]);
        EXPECT_EQ(memory[8 + 4 * row + 3], memory[4 * row] + 4);
      }
    }
    return result;
  }
};

TEST(Tokens, SeveralFilesAreOneDataSet) {
  three_files model;
  loader data(model.prog, model.request);
  EXPECT_EQ(data.samples(data_part::all), 12);
  EXPECT_EQ(model.firsts(data, data_part::all, 6),
            (std::vector<int64_t>{0, 4, 8, 30, 34, 38, 42, 60, 64, 68, 72, 76}));
  EXPECT_EQ(data.identities().size(), 3u);
  // A pattern's files are one stream: windows go over from one into the next.
  data_request joined = model.request;
  joined.tokens = {model.folder / "*.bin"};
  EXPECT_EQ(loader(model.prog, joined).samples(data_part::all), (13 + 17 + 21 - 1) / 4);
  EXPECT_EQ(loader(model.prog, joined).identities().size(), 3u);
}

TEST(Tokens, WeightsSayHowOftenAFileComes) {
  three_files model;
  const char *weights[] = {":0.5", ":0.3", ":0.2"};
  for (size_t i = 0; i < 3; ++i)
    model.request.tokens[i] += weights[i];
  model.request.seed = 4;
  loader data(model.prog, model.request);
  EXPECT_TRUE(data.is_mixture());
  std::vector<int64_t> taken = model.firsts(data, data_part::training, 5000);
  for (int64_t file = 0; file < 3; ++file) {
    std::vector<int64_t> own;
    for (int64_t first : taken)
      if (first / 30 == file)
        own.push_back((first - 30 * file) / 4);
    EXPECT_EQ(own.size(), (std::vector<size_t>{5000, 3000, 2000})[static_cast<size_t>(file)]);
    // Unshuffled, a file's windows come in turn but for the order within a block.
    std::vector<size_t> counts(static_cast<size_t>(3 + file));
    for (int64_t window : own)
      ++counts[static_cast<size_t>(window)];
    auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    EXPECT_LE(*most - *least, 1u) << file;
  }
  // An evaluation takes each window once; a batch follows from its number.
  EXPECT_EQ(data.samples(data_part::all), 12);
  model.request.shuffle = true;
  loader shuffled(model.prog, model.request), again(model.prog, model.request);
  std::vector<int64_t> first = model.firsts(shuffled, data_part::training, 40);
  again.load(data_part::training, 33, model.target());
  EXPECT_EQ(model.memory[0], first[66]);
  EXPECT_EQ(model.memory[4], first[67]);

  model.request.tokens[2] = model.folder / "2.bin";
  EXPECT_THROW(loader(model.prog, model.request), failure); // one without a weight
  model.request.tokens[2] += ":1e-9";
  EXPECT_THROW(loader(model.prog, model.request), failure);
}

} // namespace
} // namespace trainc
