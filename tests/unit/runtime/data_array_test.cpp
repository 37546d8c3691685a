// SPDX-License-Identifier: Apache-2.0
//
// Formats of data files, several files as one array, and shares of a mixture.
#include "runtime/data/data_array.h"
#include "runtime/data/mixture.h"
#include "runtime/failure.h"
#include "tests/unit/npy_bytes.h"
#include "tests/unit/scratch_folder.h"

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <set>
#include <sys/stat.h>

namespace trainc {
namespace {

template <typename T> std::string bytes_of(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

std::string llmc(int32_t magic, int32_t version, int32_t count, const std::string &tokens) {
  std::vector<int32_t> head(256);
  head[0] = magic;
  head[1] = version;
  head[2] = count;
  return bytes_of(head) + tokens;
}

template <typename T> std::vector<T> values(const data_array &array) {
  std::vector<T> result(static_cast<size_t>(array.element_count()));
  array.read(0, array.element_count(), reinterpret_cast<char *>(result.data()));
  return result;
}

// What an error says; empty where there is none.
template <typename Open> std::string problem(const Open &open) {
  try {
    open();
  } catch (const failure &error) {
    return error.message;
  }
  return "";
}

std::string token_problem(const std::string &name, std::optional<file_type> type = std::nullopt,
                          int64_t vocabulary = 256) {
  return problem([&] { open_tokens(name, type, vocabulary); });
}

#define EXPECT_SAYS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST(DataArray, JoinsShardsInNaturalOrder) {
  scratch_folder folder;
  float next = 0;
  for (const char *name : {"x-1.npy", "x-2.npy", "x-9.npy", "x-10.npy", "x-0011.npy"}) {
    std::vector<float> rows = {next, next + 1, next + 2, next + 3};
    folder.write(name, npy_array("<f4", "2, 2", rows));
    next += 4;
  }
  folder.write("other.npy", "no array");
  data_array array = open_array(folder / "x-*.npy", "x");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{10, 2}));
  std::vector<float> expected(20);
  std::iota(expected.begin(), expected.end(), 0.0f);
  EXPECT_EQ(values<float>(array), expected);
  float across[6]; // of three files
  array.read(7, 6, reinterpret_cast<char *>(across));
  EXPECT_EQ(across[0], 7);
  EXPECT_EQ(across[5], 12);
  data_array::place place = array.place_of(13);
  EXPECT_EQ(*place.path, folder / "x-10.npy");
  EXPECT_EQ(place.element, 1);
  EXPECT_EQ(place.byte, 128 + 4);
  EXPECT_EQ(open_array(folder / "x-[12].npy", "x").shape[0], 4);

  EXPECT_SAYS(problem([&] { open_array(folder / "y-*.npy", "y"); }), "y-*.npy: fits no file");
  folder.write("x-3.npy", npy_array<double>("<f8", "1, 2", {1, 2}));
  EXPECT_SAYS(problem([&] { open_array(folder / "x-*.npy", "x"); }), "x-3.npy: dtype float64, but");
  folder.write("x-3.npy", npy_array<float>("<f4", "1, 3", {1, 2, 3}));
  EXPECT_SAYS(problem([&] { open_array(folder / "x-*.npy", "x"); }), "x-3.npy: shape [1, 3], but");
  folder.write("x-3.npy", "");
  EXPECT_SAYS(problem([&] { open_array(folder / "x-*.npy", "x"); }), "x-3.npy: is empty");
  // A file may have the characters of a pattern in its name.
  folder.write("x[1].npy", npy_array<float>("<f4", "1", {7}));
  EXPECT_EQ(values<float>(open_array(folder / "x[1].npy", "x")), (std::vector<float>{7}));
}

TEST(DataArray, ReadsTensorsOfSafetensors) {
  scratch_folder folder;
  std::string header = R"({"x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                       R"("ids":{"dtype":"U16","shape":[3],"data_offsets":[16,22]},)"
                       R"("eighth":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[22,24]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  folder.write("all.safetensors",
               length + header + bytes_of<float>({1, 2, 3, 4}) + bytes_of<uint16_t>({7, 8, 9, 0}));
  std::string path = folder / "all.safetensors";
  EXPECT_EQ(values<float>(open_array(path, "x")), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(open_array(path + ":ids", "x").shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(values<uint16_t>(open_tokens(path + ":ids", std::nullopt, 100)),
            (std::vector<uint16_t>{7, 8, 9}));
  EXPECT_SAYS(problem([&] { open_array(path + ":y", "x"); }), "has no tensor 'y'");
  EXPECT_SAYS(problem([&] { open_array(path + ":eighth", "x"); }), "has dtype F8_E5M2");
  EXPECT_SAYS(problem([&] { open_tokens(path + ":x", std::nullopt, 100); }),
              "expected a flat array");
}

TEST(DataArray, TokensSayTheirTypeOrAreTold) {
  scratch_folder folder;
  std::vector<uint16_t> tokens = {1, 500, 50256};
  std::string path = folder.write("gpt2.bin", llmc(20240520, 1, 3, bytes_of(tokens)));
  EXPECT_EQ(values<uint16_t>(open_tokens(path, std::nullopt, 50257)), tokens);
  EXPECT_EQ(values<uint16_t>(open_tokens(path, file_type::u16, 50257)), tokens);
  EXPECT_SAYS(token_problem(path, file_type::u32), "has llm.c's header, whose tokens are uint16");
  std::vector<uint32_t> wide = {1, 128000};
  path = folder.write("llama.bin", llmc(20240801, 7, 2, bytes_of(wide)));
  EXPECT_EQ(values<uint32_t>(open_tokens(path, std::nullopt, 128256)), wide);
  EXPECT_SAYS(token_problem(folder.write("v.bin", llmc(20240520, 2, 3, bytes_of(tokens)))),
              "llm.c's header of version 2, expected 1");
  EXPECT_SAYS(token_problem(folder.write("c.bin", llmc(20240520, 1, 4, bytes_of(tokens)))),
              "its header says 4 tokens, 8 bytes behind it, but there are 6");
  EXPECT_SAYS(token_problem(folder.write("n.bin", llmc(20240520, 1, -1, bytes_of(tokens)))),
              "its header says -1 tokens");
  // Without a header: told, or bytes where these can fill the vocabulary.
  path = folder.write("nano.bin", bytes_of(tokens));
  EXPECT_EQ(values<uint16_t>(open_tokens(path, file_type::u16, 50257)), tokens);
  EXPECT_EQ(open_tokens(path, file_type::u8, 50257).element_count(), 6);
  EXPECT_EQ(open_tokens(path, std::nullopt, 256).element_count(), 6);
  EXPECT_SAYS(token_problem(path, std::nullopt, 50257), "try: --token-type u16");
  EXPECT_SAYS(token_problem(path, file_type::u32),
              "6 bytes are not a whole number of uint32 tokens");
  folder.write("nano.bin.json", R"({"format": "trainc data 1", "type": "uint16", "shape": [3],
    "bytes": 6, "checksum": "0", "digest": "0"})");
  EXPECT_SAYS(token_problem(path, std::nullopt, 50257), "has other contents than");
  EXPECT_SAYS(token_problem(path, file_type::u8), "is read as uint8 [6], but");
  folder.write("nano.bin.json", R"({"somebody": "else's"})");
  EXPECT_EQ(token_problem(path), "");
  folder.write("nano.bin.json", R"({"format": "trainc data 1", "type": "uint16"})");
  EXPECT_SAYS(token_problem(path), "nano.bin.json: is damaged");
}

TEST(DataArray, RefusesWhatIsNoFile) {
  scratch_folder folder;
  mkfifo((folder / "pipe").c_str(), 0600);
  EXPECT_SAYS(token_problem(folder / "pipe"),
              "pipe: cannot be read: not a regular file but a pipe");
  EXPECT_SAYS(token_problem("/dev/zero"), "not a regular file but a device");
  EXPECT_SAYS(token_problem(folder.path()), "not a regular file but a folder");
  EXPECT_SAYS(token_problem(folder.write("empty.bin", "")), "empty.bin: is empty");
  EXPECT_SAYS(token_problem(folder / "nowhere"), "nowhere: cannot be read: No such file");
  // A file that shrinks after it was opened.
  std::string path = folder.write("shrinks.bin", std::string(100, 'a'));
  data_array array = open_tokens(path, std::nullopt, 256);
  std::filesystem::resize_file(path, 10);
  EXPECT_SAYS(problem([&] { values<char>(array); }), "shrinks.bin: 90 bytes expected at offset 10");
}

TEST(DataArray, WeightsBehindNames) {
  scratch_folder folder;
  EXPECT_EQ(weighted("a.bin:0.7").name, "a.bin");
  EXPECT_EQ(weighted("a.bin:0.7").weight, 0.7);
  EXPECT_EQ(weighted("a.bin").weight, 0);
  EXPECT_EQ(weighted("a.safetensors:ids").name, "a.safetensors:ids");
  EXPECT_EQ(weighted("a.safetensors:ids:2").name, "a.safetensors:ids");
  EXPECT_THROW(weighted("a.bin:0"), failure);
  EXPECT_THROW(weighted("a.bin:-1"), failure);
  folder.write("odd:1", "text");
  EXPECT_EQ(weighted(folder / "odd:1").weight, 0);
}

TEST(Mixture, HoldsSharesExactlyAndTakesEachSampleOnce) {
  EXPECT_EQ(mixture::shares_of({0.7, 0.3}), (std::vector<int64_t>{7000, 3000}));
  EXPECT_EQ(mixture::shares_of({1, 1, 1}), (std::vector<int64_t>{3334, 3333, 3333}));
  EXPECT_EQ(mixture::shares_of({1e9, 1}), (std::vector<int64_t>{10000, 0}));
  std::vector<int64_t> shares = mixture::shares_of({5, 3, 2});
  mixture draws(shares, 3);
  std::map<size_t, std::set<int64_t>> seen;
  size_t longest = 0, run = 0, last = 9;
  for (int64_t position = 0; position < 3 * mixture::block_size; ++position) {
    mixture::draw drawn = draws(position);
    EXPECT_TRUE(seen[drawn.source].insert(drawn.index).second);
    run = drawn.source == last ? run + 1 : 1;
    longest = std::max(longest, run);
    last = drawn.source;
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen[i].size(), static_cast<size_t>(3 * shares[i]));
    EXPECT_EQ(*seen[i].rbegin(), 3 * shares[i] - 1); // none is left out
  }
  EXPECT_LT(longest, 30u); // well mixed: 0.5^30 per position
  mixture again(shares, 3);
  EXPECT_EQ(again(29999).index, draws(29999).index);
  EXPECT_EQ(again(5).index, draws(5).index); // going back
}

} // namespace
} // namespace trainc
