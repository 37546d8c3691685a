// SPDX-License-Identifier: Apache-2.0
//
// File formats: .npy headers, safetensors and CRC-32C; good files, and hostile
// ones, which must be errors.
#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/files/npy.h"
#include "runtime/files/safetensors.h"
#include "runtime/host_access.h"
#include "runtime/random.h"
#include "tests/unit/npy_bytes.h"
#include "tests/unit/scratch_folder.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

std::string npy_problem(const std::string &bytes) {
  scratch_folder folder;
  input_file file(folder.write("x.npy", bytes), exit_data);
  try {
    read_npy_header(file);
  } catch (const failure &error) {
    EXPECT_EQ(error.code, exit_data);
    return error.message;
  }
  return "";
}

std::string with_header(const std::string &header, size_t bytes = 64) {
  return npy_problem(npy_bytes(header, std::string(bytes, '\0')));
}

TEST(Npy, ReadsAllVersions) {
  for (int version : {1, 2, 3}) {
    scratch_folder folder;
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    input_file file(folder.write("x.npy", npy_bytes(header, std::string(24, 'x'), version)),
                    exit_data);
    npy_header result = read_npy_header(file);
    EXPECT_EQ(result.type, file_type::f32);
    EXPECT_EQ(result.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(result.element_count, 6);
    EXPECT_EQ(result.data_offset + 24, file.size());
  }
}

TEST(Npy, ReadsScalarsVectorsAndOneByteTypes) {
  EXPECT_EQ(with_header("{'shape': (), 'fortran_order': False, 'descr': '|u1'}", 1), "");
  EXPECT_EQ(with_header("{'descr': '|b1', 'fortran_order': False, 'shape': (64,), }"), "");
  EXPECT_EQ(with_header("{'descr': '>i1', 'fortran_order': False, 'shape': (64,), }"), "");
  EXPECT_EQ(with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 7), }", 0), "");
}

TEST(Npy, RefusesBytesBehindTheArray) {
  const std::string good = npy_array<float>("<f4", "2,", {1, 2});
  for (const char *behind : {"x", "\x93NUMPY"}) // such as another array
    EXPECT_NE(npy_problem(good + behind).find("behind its data"), std::string::npos);
}

TEST(Npy, RefusesWhatItCannotRead) {
  auto expect = [](const std::string &header, const char *words) {
    EXPECT_NE(with_header(header).find(words), std::string::npos) << with_header(header);
  };
  expect("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "big-endian");
  expect("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "Fortran");
  expect("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "dtype");
  expect("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "records");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (100,), }", "truncated");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         "overflows");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
         "overflows");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "damaged");
  expect("{'descr': '<f4', 'fortran_order': False}", "damaged");
  expect("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "damaged");
  expect("", "damaged");
  expect("{'descr", "damaged");
  expect("{'descr': '\x1b[31m\n\x7f\xc2\x9b\xc3\xa4'}", "'\\x1b[31m\\n\\x7f\\xc2\\x9b\xc3\xa4'");
}

TEST(Npy, RefusesForeignAndTruncatedFiles) {
  std::string good = npy_array<float>("<f4", "2,", {1, 2});
  EXPECT_EQ(npy_problem(good), "");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(npy_problem(good.substr(0, length)), "") << length;
  EXPECT_NE(npy_problem("PK\x03\x04 an archive of arrays, not one array"), "");
  std::string future = good;
  future[6] = 4;
  EXPECT_NE(npy_problem(future), "");
}

// Any single damaged header byte gives a header or an error, never a crash, and
// never a header that claims more than the file has.
TEST(Npy, SurvivesDamage) {
  std::string good = npy_array<float>("<f4", "2, 1", {1, 2});
  for (size_t at = 0; at + 8 < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      scratch_folder folder;
      input_file file(folder.write("x.npy", bad), exit_data);
      try {
        npy_header header = read_npy_header(file);
        EXPECT_LE(header.data_offset + header.element_count * bytes_of(header.type), file.size());
      } catch (const failure &) {
      }
    }
}

std::string tensors_file(const std::string &json, size_t data_bytes) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(json.size() >> (8 * i));
  return bytes + json + std::string(data_bytes, 'd');
}

std::string tensors_problem(const std::string &bytes) {
  scratch_folder folder;
  input_file file(folder.write("x.safetensors", bytes), exit_checkpoint);
  try {
    read_safetensors_index(file);
  } catch (const failure &error) {
    EXPECT_EQ(error.code, exit_checkpoint);
    return error.message;
  }
  return "";
}

TEST(Safetensors, RoundTrip) {
  float values[6] = {1, 2, 3, 4, 5, 6};
  int64_t scalar = -7;
  std::vector<tensor_view> tensors = {
      {"w \"quoted\" \\ \n", data_type::f32, {2, 3}, reinterpret_cast<char *>(values), 24},
      {"empty", data_type::f64, {0, 4}, nullptr, 0},
      {"scalar", data_type::i64, {}, reinterpret_cast<char *>(&scalar), 8}};
  std::string bytes = safetensors_header(tensors, {{"loss", "2.5"}});
  EXPECT_EQ(bytes.size() % 64, 0u);
  for (const tensor_view &tensor : tensors)
    bytes.append(tensor.data, static_cast<size_t>(tensor.bytes));

  scratch_folder folder;
  input_file file(folder.write("x.safetensors", bytes), exit_checkpoint);
  safetensors_index index = read_safetensors_index(file);
  EXPECT_EQ(index.metadata.at("loss"), "2.5");
  ASSERT_EQ(index.tensors.size(), 3u);
  host_access access;
  float read[6] = {};
  tensors[0].data = reinterpret_cast<char *>(read);
  read_tensor(file, index, tensors[0], access);
  EXPECT_TRUE(std::equal(values, values + 6, read));

  double wide[6] = {};
  tensors[0].type = data_type::f64;
  tensors[0].bytes = 48;
  tensors[0].data = reinterpret_cast<char *>(wide);
  read_tensor(file, index, tensors[0], access);
  EXPECT_EQ(wide[5], 6.0);

  tensors[0].shape = {3, 2};
  EXPECT_THROW(read_tensor(file, index, tensors[0], access), failure);
  tensors[0].name = "absent";
  EXPECT_THROW(read_tensor(file, index, tensors[0], access), failure);
}

TEST(Safetensors, RefusesHostileFiles) {
  auto entry = [](const char *name, const char *type, const char *shape, const char *range) {
    return std::string("\"") + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + range + "}";
  };
  std::string good = "{" + entry("a", "F32", "[2]", "[0,8]") + "}";
  EXPECT_EQ(tensors_problem(tensors_file(good, 8)), "");
  EXPECT_EQ(tensors_problem(tensors_file("{}", 0)), "");

  auto expect = [](const std::string &json, size_t bytes, const char *words) {
    std::string problem = tensors_problem(tensors_file(json, bytes));
    EXPECT_NE(problem.find(words), std::string::npos) << json << ": " << problem;
  };
  expect(good, 7, "outside the file");
  expect(good, 9, "no tensor");
  expect("{" + entry("a", "F32", "[2]", "[4,12]") + "}", 12, "no tensor");
  expect("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[2]", "[4,12]") + "}",
         12, "overlap");
  expect("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("a", "F32", "[2]", "[8,16]") + "}",
         16, "twice");
  expect("{" + entry("a", "F32", "[3]", "[0,8]") + "}", 8, "does not fit its shape");
  expect("{" + entry("a", "F33", "[2]", "[0,8]") + "}", 8, "unknown type");
  expect("{" + entry("a", "F32", "[4611686018427387904, 4]", "[0,8]") + "}", 8, "overflows");
  expect("{" + entry("a", "F32", "[-2]", "[0,8]") + "}", 8, "damaged");
  expect("{" + entry("a", "F32", "[2.0]", "[0,8]") + "}", 8, "damaged");
  expect("{" + entry("a", "F32", "[2]", "[8,0]") + "}", 8, "outside the file");
  expect("{" + entry("a", "F32", "[2]", "[0,8,9]") + "}", 8, "damaged");
  expect("{\"a\":3}", 0, "damaged");
  expect("{\"\\u001b\\n\\u009b\":3}", 0, "'\\x1b\\n\\xc2\\x9b'");
  expect("{\"__metadata__\":{\"a\":1}}", 0, "metadata");
  expect("[]", 0, "damaged");
  expect("{", 0, "damaged");
  expect("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0, "damaged");
  EXPECT_NE(tensors_problem(std::string(8, '\xff')), "");
  EXPECT_NE(tensors_problem(std::string("\x10\0\0\0\0\0\0\0{}", 10)), "");
  EXPECT_NE(tensors_problem("abc"), "");
}

TEST(Safetensors, RefusesHugeHeader) {
  std::string bytes(8, '\0');
  bytes[4] = 1; // 4 GiB of header
  EXPECT_NE(tensors_problem(bytes + "{}").find("claims"), std::string::npos);
}

TEST(Crc32c, KnownValues) {
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(0, std::string(32, '\0').data(), 32), 0x8A9136AAu);
  EXPECT_EQ(crc32c(0, std::string(32, '\xff').data(), 32), 0x62A8AB43u);
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c_portable(0, "123456789", 9), 0xE3069283u);
}

TEST(Crc32c, PiecesAndBothFormsAgree) {
  std::string bytes;
  for (uint64_t i = 0; i < 1000; ++i)
    bytes += static_cast<char>(random_bits(1, random_stream::sampling, i));
  for (size_t cut = 0; cut <= bytes.size(); cut += 37) {
    uint32_t whole = crc32c(0, bytes.data(), bytes.size());
    uint32_t first = crc32c(0, bytes.data(), cut);
    EXPECT_EQ(crc32c(first, bytes.data() + cut, bytes.size() - cut), whole);
    EXPECT_EQ(crc32c_portable(first, bytes.data() + cut, bytes.size() - cut), whole);
  }
}

} // namespace
} // namespace trainc
