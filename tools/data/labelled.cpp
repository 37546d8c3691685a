// SPDX-License-Identifier: Apache-2.0
//
// `trainc-data labelled`: tokens, masks and labels of texts that are classified. The file is read
// twice: what its labels are, then its texts.
#include "tools/data/byte_pairs.h"
#include "tools/data/commands.h"
#include "tools/data/csv_column.h"
#include "tools/data/data_file.h"
#include "tools/data/encoding.h"
#include "tools/data/record_reader.h"

#include "runtime/failure.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <memory>

namespace trainc::data {
namespace {

constexpr int64_t kLongest = 1 << 20; // tokens of a sample

class LabelledCommand {
public:
  explicit LabelledCommand(const Arguments &arguments)
      : arguments_(arguments), file_(arguments.words[0], exit_data), length_(lengthOf(arguments)) {
    if (arguments.words.size() > 1)
      throw failure(exit_usage, "labelled: takes one file; " + arguments.words[1] + " is another");
    labels_.name = arguments.text("label");
    const std::string &vocabulary = arguments.text("vocabulary");
    if (!vocabulary.empty())
      pairs_.emplace(vocabulary, arguments.text("merges"), arguments.text("split"));
    begin_ = tokenOf("begin");
    end_ = tokenOf("end");
    pad_ = std::max<int64_t>(tokenOf("pad"), 0);
    if (length_ <= static_cast<size_t>((begin_ >= 0) + (end_ >= 0)))
      throw failure(exit_usage, "option --length: --begin and --end leave no place for a text");
    size_ = std::max({pairs_ ? pairs_->vocabularySize() : 256, begin_ + 1, end_ + 1, pad_ + 1});
  }

  void run() {
    Progress progress("labelled", 2 * file_.size(), arguments_.has("no-progress"));
    auto reader = records();
    for (LabelledText record; reader->read(record); ++count_) {
      labels_.note(record.line, record.label);
      progress.at(reader->bytes());
    }
    if (count_ == 0)
      throw failure(exit_data, file_.path() + ": has no text");
    checkLabels();
    if (size_ <= 256)
      write<uint8_t>(file_type::u8, progress);
    else if (size_ <= 65536)
      write<uint16_t>(file_type::u16, progress);
    else
      write<uint32_t>(file_type::u32, progress);
  }

private:
  static size_t lengthOf(const Arguments &arguments) {
    if (!arguments.has("length"))
      throw failure(exit_usage,
                    "labelled: nothing says how many tokens a sample has\n  try: --length 128");
    return static_cast<size_t>(arguments.integer("length", 1, kLongest));
  }

  std::unique_ptr<RecordReader> records() const {
    return recordsOf(file_, {arguments_.text("text"), arguments_.text("label")});
  }

  // -1 where the option is not given.
  int64_t tokenOf(const std::string &option) const {
    if (!arguments_.has(option))
      return -1;
    return pairs_ ? pairs_->idOf(arguments_.text(option), "--" + option)
                  : arguments_.integer(option, 0, 65535);
  }

  void checkLabels() const {
    const std::string name = "'" + labels_.name + "'";
    if (labels_.foreign.line)
      refuseLine(file_, labels_.foreign.line,
                 name + " has the byte " + labels_.foreign.field +
                     ", which is not UTF-8\n  try: " + conversionOf(file_.path(), "WINDOWS-1252"));
    if (labels_.empty.line)
      refuseLine(file_, labels_.empty.line,
                 name + " is empty\n  try: a label there, or without the line");
    if (labels_.number.line && labels_.text.line)
      refuseLine(file_, labels_.text.line,
                 name + " is '" + labels_.text.field +
                     format_text("', but in line %" PRId64 " the number %s\n  try: "
                                 "texts in all lines, or numbers",
                                 labels_.number.line, labels_.number.field.c_str()));
    if (!labels_.numbers && labels_.beyond.line)
      refuseLine(file_, labels_.beyond.line,
                 name +
                     " has more than 65,536 different texts, too many for classes\n  try: --label "
                     "with another field");
    if (labels_.digits && !labels_.whole)
      refuseLine(file_, labels_.fraction.line,
                 name + " is " + labels_.fraction.field +
                     ", which int64 does not hold\n  try: numbers of classes");
  }

  // Tokens of a text with those before and after it, no more than fit.
  std::vector<uint32_t> tokensOf(const LabelledText &record) {
    std::vector<uint32_t> tokens;
    if (begin_ >= 0)
      tokens.push_back(static_cast<uint32_t>(begin_));
    if (pairs_) {
      if (const std::string byte = foreignByte(record.text); !byte.empty())
        refuseLine(file_, record.line,
                   "the text has the byte " + byte + ", which is not UTF-8\n  try: " +
                       conversionOf(file_.path(), "WINDOWS-1252"));
      pairs_->encode(record.text, /*last=*/true, tokens);
    } else {
      for (char byte : record.text)
        tokens.push_back(static_cast<unsigned char>(byte));
    }
    const size_t most = length_ - (end_ >= 0);
    cut_ += tokens.size() > most;
    longest_ = std::max(longest_, tokens.size() + (end_ >= 0));
    tokens.resize(std::min(tokens.size(), most));
    if (end_ >= 0)
      tokens.push_back(static_cast<uint32_t>(end_));
    if (tokens.empty())
      refuseLine(file_, record.line,
                 "the text is empty, and attention over nothing is NaN\n  try: without the "
                 "line, or --begin, a token before each text");
    return tokens;
  }

  template <typename T> void write(file_type type, Progress &progress) {
    const std::string &folder = arguments_.text("output");
    makeFolder(folder);
    Split split(count_, arguments_);
    std::vector<std::string> read = arguments_.words;
    for (const char *option : {"vocabulary", "merges"})
      if (arguments_.has(option))
        read.push_back(arguments_.text(option));
    Outputs outputs(read);
    const std::vector<int64_t> shape = {static_cast<int64_t>(length_)};
    const bool isClass = !labels_.numbers || labels_.whole;
    SplitFile ids(outputs, folder + "/input_ids.npy", type, shape, split);
    SplitFile mask(outputs, folder + "/attention_mask.npy", file_type::u8, shape, split);
    SplitFile labels(outputs, folder + "/labels.npy", isClass ? file_type::i64 : file_type::f32,
                     isClass ? std::vector<int64_t>{} : std::vector<int64_t>{1}, split);
    auto reader = records();
    for (LabelledText record; reader->read(record); progress.at(file_.size() + reader->bytes())) {
      const std::vector<uint32_t> tokens = tokensOf(record);
      std::vector<T> padded(tokens.begin(), tokens.end());
      padded.resize(length_, static_cast<T>(pad_));
      std::vector<uint8_t> present(tokens.size(), 1);
      present.resize(length_, 0);
      ids.append(padded.data());
      mask.append(present.data());
      append(labels, record.line, record.label);
    }
    ids.finish({{"made", "trainc-data labelled"}, {"vocabulary", size_}});
    mask.finish({{"made", "trainc-data labelled"}});
    nlohmann::ordered_json facts = {{"made", "trainc-data labelled"}};
    if (!labels_.numbers)
      for (auto &[text, number] : labels_.texts)
        facts["classes"].push_back(text);
    labels.finish(facts);
    outputs.publish();
    printClasses(labels_);
    printf("%" PRId64 " texts, the longest has %zu tokens", count_, longest_);
    printf(cut_ ? "; %" PRId64 " are cut after %zu\n" : "\n", cut_, length_);
  }

  void append(SplitFile &file, int64_t line, const std::string &label) const {
    int64_t whole = labels_.numbers ? 0 : labels_.classOf(label);
    if (labels_.numbers && !labels_.whole) {
      double value = 0;
      fieldToNumber(label, value);
      if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
        refuseLine(file_, line,
                   "'" + labels_.name + "' is " + label +
                       ", which is beyond the numbers of float32\n  try: a smaller unit");
      const auto narrow = static_cast<float>(value);
      return file.append(&narrow);
    }
    if (labels_.numbers)
      fieldToWhole(label, whole);
    file.append(&whole);
  }

  const Arguments &arguments_;
  input_file file_;
  size_t length_;
  std::optional<BytePairs> pairs_;
  int64_t begin_ = -1, end_ = -1, pad_ = 0; // tokens
  int64_t size_ = 0;                        // of the vocabulary
  Column labels_;
  int64_t count_ = 0, cut_ = 0;
  size_t longest_ = 0;
};

} // namespace

const CommandRow &labelledCommand() {
  static const CommandRow row = {
      "labelled",
      "tokens, masks and labels of texts to classify",
      "FILE",
      "Reads an object of JSON a line (.jsonl), or a table (.csv, .tsv) with a row of names. "
      "Writes "
      "for each\n"
      "text FOLDER/input_ids.npy [texts, length], attention_mask.npy (1 where there is a token, 0 "
      "after the\n"
      "text) and labels.npy: the numbers of their texts in sorted order, which the manifest lists; "
      "whole\n"
      "numbers as they are; others as f32 [texts, 1].",
      "labelled reviews.jsonl --length 128 --validation-share 0.1 -o reviews",
      {
          {"output", "FOLDER", "", "where the arrays go"},
          {"length", "N", "", "tokens of a sample; longer texts are cut, and counted"},
          {"text", "FIELD", "text", "field or column of the text"},
          {"label", "FIELD", "label", "field or column of its label"},
          {"vocabulary", "FILE", "", "byte pairs, as of `trainc-data text`; without it bytes"},
          OptionRow("merges", "FILE", "", "GPT-2's merges.txt")
              .refusedWhen("merges !vocabulary", "bytes have none", "--vocabulary vocab.json"),
          {"split", "PATTERN", "gpt2", "as of `trainc-data text`"},
          {"begin", "TOKEN", "", "token before each text, by its text or number: <s>"},
          {"end", "TOKEN", "", "token after each text, those that are cut too: </s>"},
          {"pad", "TOKEN", "", "token where the mask is 0 (default 0)"},
          {"validation-share", "X", "0",
           "random part of the texts, to files of their own: input_ids-validation.npy"},
          {"seed", "N", "0", "of that choice"},
      },
      [](const Arguments &arguments) { LabelledCommand(arguments).run(); },
  };
  return row;
}

} // namespace trainc::data
