// SPDX-License-Identifier: Apache-2.0
//
// `trainc-data text`: a flat file of tokens from text.
#include "tools/data/byte_pairs.h"
#include "tools/data/commands.h"
#include "tools/data/data_file.h"
#include "tools/data/encoding.h"

#include "runtime/failure.h"

#include <algorithm>
#include <cinttypes>
#include <memory>

namespace trainc::data {
namespace {

constexpr size_t kChunkBytes = 1 << 20; // of text, encoded at once

// How many bytes at the end begin a character that goes on after them; throws where the text is not
// UTF-8.
size_t unfinishedBytes(std::string_view text, bool last, const std::string &path, int64_t offset) {
  const Utf8Part part = utf8Part(text);
  const size_t left = text.size() - part.whole;
  if (part.isBroken || (last && left > 0))
    throw failure(exit_data,
                  format_text("%s: byte %" PRId64 " is not UTF-8\n  try: ", path.c_str(),
                              offset + static_cast<int64_t>(part.whole)) +
                      conversionOf(path, "WINDOWS-1252") +
                      ", or another encoding that it has; or without --vocabulary: bytes are "
                      "tokens then");
  return left;
}

class TextCommand {
public:
  explicit TextCommand(const Arguments &arguments) : arguments_(arguments) {
    const std::string &vocabulary = arguments.text("vocabulary");
    if (!vocabulary.empty())
      pairs_.emplace(vocabulary, arguments.text("merges"), arguments.text("split"));
    if (arguments.has("between"))
      between_ = pairs_->idOf(arguments.text("between"), "--between");
    int64_t size = pairs_ ? std::max(pairs_->vocabularySize(), between_ + 1) : 256;
    type_ = size <= 256 && !pairs_ ? file_type::u8
            : size <= 65536        ? file_type::u16
                                   : file_type::u32;
    facts_ = {{"made", "trainc-data text"}, {"vocabulary", size}};
    format_ = FileFormat::raw;
    const std::string &format = arguments.text("format");
    if (format == "npy")
      format_ = FileFormat::npy;
    if (format == "llm.c") {
      format_ = FileFormat::llmc;
      type_ = size <= 65536 ? file_type::u16 : file_type::u32;
    }
  }

  void run() {
    std::vector<std::unique_ptr<input_file>> files;
    int64_t total = 0;
    for (const std::string &path : arguments_.words) {
      files.push_back(std::make_unique<input_file>(path, exit_data));
      total += files.back()->size();
      checkEncoding(*files.back());
    }
    if (total == 0)
      throw failure(exit_data, arguments_.words[0] + ": is empty");
    double share = arguments_.real("validation-share", 0, 0.999);
    border_ = share > 0 ? borderOf(files, total, share) : total;
    const std::string &path = arguments_.text("output");
    std::vector<std::string> read = arguments_.words;
    for (const char *option : {"vocabulary", "merges"})
      if (arguments_.has(option))
        read.push_back(arguments_.text(option));
    Outputs outputs(read);
    training_.emplace(outputs, path, format_, type_, std::vector<int64_t>{});
    if (share > 0)
      validation_.emplace(outputs, validationPath(path), format_, type_, std::vector<int64_t>{});
    else
      outputs.refuseOldValidation(path);
    Progress progress("text", total, arguments_.has("no-progress"));
    for (const auto &file : files)
      take(*file, progress);
    training_->finish(facts_);
    if (validation_)
      validation_->finish(facts_);
    outputs.publish();
    printf(
        "%" PRId64 " bytes of text, %.3f a token, vocabulary %s\n", total,
        static_cast<double>(total) /
            static_cast<double>(training_->samples() + (validation_ ? validation_->samples() : 0)),
        facts_["vocabulary"].dump().c_str());
  }

private:
  // Byte pairs are of UTF-8. Bytes may be anything, but those of UTF-16 make poor tokens.
  void checkEncoding(const input_file &file) const {
    const std::string encoding = wideEncoding(file);
    if (encoding.empty())
      return;
    const std::string conversion = "\n  try: " + conversionOf(file.path(), encoding);
    if (pairs_)
      throw failure(exit_data, file.path() + ": is " + encoding + ", not UTF-8" + conversion);
    fprintf(stderr, "trainc-data: warning: %s: looks like %s; its bytes are the tokens%s\n",
            file.path().c_str(), encoding.c_str(), conversion.c_str());
  }

  // Where the last share of all text begins, on a line of its own or in a file, so that no token
  // has both.
  static int64_t borderOf(const std::vector<std::unique_ptr<input_file>> &files, int64_t total,
                          double share) {
    int64_t border = total - static_cast<int64_t>(static_cast<double>(total) * share), before = 0;
    for (const auto &file : files) {
      if (border > before && border < before + file->size())
        border = before + nextLine(*file, border - before);
      before += file->size();
    }
    if (border == total)
      throw failure(
          exit_usage,
          format_text("option --validation-share: nothing is left for validation, because "
                      "no line begins in the last %g of the %" PRId64 " bytes of text\n"
                      "  try: a larger share, or files of their own for both",
                      share, total));
    return border;
  }

  // Text after the border is for validation.
  void take(const input_file &file, Progress &progress) {
    isValidation_ = validation_ && before_ >= border_;
    if (before_ > 0 && between_ >= 0)
      put({static_cast<uint32_t>(between_)});
    int64_t size = file.size(), ends = std::clamp<int64_t>(border_ - before_, 0, size);
    takePart(file, 0, ends, progress);
    takePart(file, ends, size, progress);
    before_ += size;
  }

  static int64_t nextLine(const input_file &file, int64_t from) {
    std::string text(kChunkBytes, '\0');
    for (int64_t at = from; at < file.size(); at += static_cast<int64_t>(text.size())) {
      text.resize(std::min<size_t>(kChunkBytes, static_cast<size_t>(file.size() - at)));
      file.read(at, text.data(), static_cast<int64_t>(text.size()));
      if (size_t line = text.find('\n'); line != std::string::npos)
        return at + static_cast<int64_t>(line) + 1;
    }
    return file.size();
  }

  void takePart(const input_file &file, int64_t begin, int64_t end, Progress &progress) {
    isValidation_ = validation_ && before_ + begin >= border_;
    std::string text;
    std::vector<uint32_t> tokens;
    if (pairs_ && begin == 0) // a byte order mark is not text
      begin = static_cast<int64_t>(markBytes(file));
    for (int64_t at = begin; at < end || !text.empty();) {
      size_t kept = text.size();
      auto bytes = std::min<int64_t>(kChunkBytes, end - at);
      text.resize(kept + static_cast<size_t>(bytes));
      file.read(at, text.data() + kept, bytes);
      at += bytes;
      progress.at(before_ + at);
      if (!pairs_) {
        put(text.data(), static_cast<int64_t>(text.size()));
        text.clear();
        continue;
      }
      bool last = at == end;
      auto offset = at - static_cast<int64_t>(text.size());
      size_t whole = text.size() - unfinishedBytes(text, last, file.path(), offset);
      tokens.clear();
      size_t taken = pairs_->encode(std::string_view(text).substr(0, whole), last, tokens);
      text.erase(0, taken);
      put(tokens);
    }
  }

  DataFile &target() { return isValidation_ ? *validation_ : *training_; }

  void put(const void *bytes, int64_t count) {
    if (type_ == file_type::u8)
      return target().append(bytes, count);
    auto values = static_cast<const unsigned char *>(bytes);
    put(std::vector<uint32_t>(values, values + count));
  }

  void put(const std::vector<uint32_t> &tokens) {
    if (type_ == file_type::u32)
      return target().append(tokens.data(), static_cast<int64_t>(tokens.size()));
    std::vector<uint16_t> narrow(tokens.begin(), tokens.end());
    target().append(narrow.data(), static_cast<int64_t>(narrow.size()));
  }

  const Arguments &arguments_;
  std::optional<BytePairs> pairs_;
  int64_t between_ = -1; // a token, or none
  file_type type_;
  FileFormat format_;
  nlohmann::ordered_json facts_;
  int64_t border_ = 0, before_ = 0; // bytes of all files
  bool isValidation_ = false;
  std::optional<DataFile> training_, validation_;
};

} // namespace

const CommandRow &textCommand() {
  static const CommandRow row = {
      "text",
      "tokens from text",
      "FILE...",
      "Writes the tokens of text files, one file behind the other, as `trainer train --tokens` "
      "reads\n"
      "them: the bytes themselves, or byte pairs of a vocabulary, for which text must be UTF-8.",
      "text book.txt --vocabulary vocab.json --merges merges.txt -o tokens.bin",
      {
          {"output", "FILE", "", "file of tokens"},
          {"vocabulary", "FILE", "",
           "byte pairs: GPT-2's vocab.json with --merges, or a file of ranks as tiktoken has them\n"
           "(base 64 and number)"},
          OptionRow("merges", "FILE", "", "GPT-2's merges.txt")
              .refusedWhen("merges !vocabulary", "bytes have none", "--vocabulary vocab.json"),
          {"split", "PATTERN", "gpt2",
           "how text is cut into pieces before pairs are joined: gpt2, cl100k, o200k or a Perl\n"
           "regular expression without look-behind"},
          OptionRow("between", "TOKEN", "",
                    "token between two files, by its text or number: <|endoftext|>")
              .refusedWhen("between !vocabulary", "bytes have none", "--vocabulary vocab.json"),
          {"format", "KIND", "raw",
           "raw integers (bytes, or 16 bits, or 32 where 16 do not hold the vocabulary), llm.c's "
           ".bin, "
           "or\n.npy",
           false, "raw|llm.c|npy"},
          {"validation-share", "X", "0",
           "last part of the text, from the next line, to a file of its own: FILE-validation"},
      },
      [](const Arguments &arguments) { TextCommand(arguments).run(); },
  };
  return row;
}

} // namespace trainc::data
