// SPDX-License-Identifier: Apache-2.0
//
// `trainc-data raw`: .npy from files of numbers without a header that says what they are.
#include "tools/data/commands.h"
#include "tools/data/data_file.h"

#include "runtime/failure.h"

#include <algorithm>
#include <cinttypes>
#include <memory>

namespace trainc::data {
namespace {

file_type typeOf(const std::string &name) {
  for (auto [text, type] : {std::pair("f32", file_type::f32), std::pair("f64", file_type::f64),
                            std::pair("i8", file_type::i8), std::pair("i16", file_type::i16),
                            std::pair("i32", file_type::i32), std::pair("i64", file_type::i64),
                            std::pair("u8", file_type::u8), std::pair("u16", file_type::u16)})
    if (name == text)
      return type;
  return file_type::u32;
}

void makeArray(const Arguments &arguments) {
  file_type type = typeOf(arguments.text("type"));
  std::vector<int64_t> shape;
  int64_t width = bytes_of(type), bytes = width;
  if (arguments.has("shape"))
    for (double extent : numbersOf(arguments.text("shape"), "shape")) {
      const bool isInRange = extent >= 1 && extent < 0x1p63;
      shape.push_back(isInRange ? static_cast<int64_t>(extent) : 0);
      if (!isInRange || extent != static_cast<double>(shape.back()) ||
          __builtin_mul_overflow(bytes, shape.back(), &bytes))
        throw failure(exit_usage, "option --shape: '" + arguments.text("shape") +
                                      "' is not a shape of a sample\n  try: --shape 3,32,32");
    }
  const int64_t skipped = arguments.integer("skip", 0, INT32_MAX);
  const int64_t between = arguments.integer("skip-each", 0, INT32_MAX);
  int64_t samples = 0, stride;
  if (__builtin_add_overflow(bytes, between, &stride))
    throw failure(exit_usage, "option --shape: '" + arguments.text("shape") +
                                  "' is too large a sample\n  try: --shape 3,32,32");
  std::vector<std::unique_ptr<input_file>> files;
  for (const std::string &path : arguments.words) {
    files.push_back(std::make_unique<input_file>(path, exit_data));
    int64_t content = files.back()->size() - skipped;
    if (content <= 0 || content % stride != 0)
      throw failure(exit_data,
                    format_text("%s: %" PRId64 " bytes behind the first %" PRId64
                                " are not a whole number of samples of %" PRId64 " bytes",
                                path.c_str(), content, skipped, stride));
    samples += content / stride;
  }
  Split split(samples, arguments);
  Outputs outputs(arguments.words);
  SplitFile file(outputs, arguments.text("output"), type, shape, split);
  Progress progress("raw", samples, arguments.has("no-progress"));
  std::vector<char> sample(static_cast<size_t>(bytes));
  int64_t done = 0;
  for (const auto &from : files)
    for (int64_t at = skipped; at < from->size(); at += stride) {
      from->read(at + between, sample.data(), bytes);
      for (int64_t i = 0; arguments.has("big-endian") && i < bytes; i += width)
        std::reverse(sample.begin() + i, sample.begin() + i + width);
      file.append(sample.data());
      progress.at(++done);
    }
  file.finish({{"made", "trainc-data raw"}});
  outputs.publish();
}

} // namespace

const CommandRow &rawCommand() {
  static const CommandRow row = {
      "raw",
      ".npy from raw arrays",
      "FILE...",
      "Writes the numbers of raw files, one file behind the other, as one .npy array whose first "
      "axis\n"
      "counts samples.",
      "raw train-images-idx3-ubyte --type u8 --shape 1,28,28 --skip 16 -o x.npy",
      {
          {"output", "FILE.npy", "", "array to write"},
          {"type", "TYPE", "f32", "of the numbers", false, "f32|f64|i8|i16|i32|i64|u8|u16|u32"},
          {"shape", "N,...", "", "of one sample; without it a sample is one number"},
          {"skip", "BYTES", "0", "at the beginning of each file"},
          {"skip-each", "BYTES", "0", "before each sample"},
          {"big-endian", "", "", "the numbers are"},
          {"validation-share", "X", "0",
           "random part of the samples, to a file of its own: FILE-validation.npy"},
          {"seed", "N", "0", "of that choice"},
      },
      makeArray,
  };
  return row;
}

const CommandRow &checkCommand() {
  static const CommandRow row = {
      "check",
      "compare data files with their checksums",
      "FILE...",
      "Reads all of each file and compares it with the checksum in FILE.json beside it. (A "
      "trainer\n"
      "compares sampled contents.)",
      "check x.npy labels.npy",
      {},
      [](const Arguments &arguments) {
        problem_list problems;
        for (const std::string &path : arguments.words)
          try {
            checkWhole(path);
            printf("%s: sound\n", path.c_str());
          } catch (const failure &error) {
            problems.add(error.message);
          }
        problems.throw_if_any(exit_data);
      },
  };
  return row;
}

} // namespace trainc::data
