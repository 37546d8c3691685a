// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding.
#include "tools/data/byte_pairs.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/files/file_operations.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <sstream>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace trainc::data {

struct BytePairs::Pattern {
  pcre2_code *code = nullptr;
  pcre2_match_data *match = nullptr;
  ~Pattern() {
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }
};

namespace {

constexpr int64_t kMostVocabularyBytes = 256 << 20; // of 200,000 tokens it has 4 MB
constexpr int kDeepestVocabulary = 2; // one array more than is right, to name its token
constexpr size_t kMostKnownPieces = 1 << 20;
constexpr size_t kMargin = 4096; // bytes before the end of a text whose pieces may change with more

struct NamedPattern {
  const char *name, *pattern;
};
// As in openai/gpt-2 (encoder.py) and openai/tiktoken (tiktoken_ext/openai_public.py).
constexpr NamedPattern kPatterns[] = {
    {"gpt2", R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"cl100k",
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|)"
     R"(\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
    {"o200k", R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
              R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
              R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
              R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
              R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

std::string contentsOf(const std::string &path) {
  input_file file(path, exit_data);
  if (file.size() > kMostVocabularyBytes)
    throw failure(exit_data,
                  format_text("%s: has %lld bytes; a vocabulary or its merges have %lld at most",
                              path.c_str(), static_cast<long long>(file.size()),
                              static_cast<long long>(kMostVocabularyBytes)));
  return file.whole_text();
}

// GPT-2 writes bytes as characters that can be seen: printable ones of Latin-1 as they are, the
// others as those from 256 on, in turn.
std::map<uint32_t, char> visibleBytes() {
  std::map<uint32_t, char> bytes;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    bool seen = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    bytes[seen ? byte : next++] = static_cast<char>(byte);
  }
  return bytes;
}

// The bytes that a token of GPT-2's files means; false where it is written otherwise (an added
// token).
bool bytesOf(const std::string &written, std::string &bytes) {
  static const std::map<uint32_t, char> visible = visibleBytes();
  bytes.clear();
  for (size_t i = 0; i < written.size();) {
    auto first = static_cast<unsigned char>(written[i++]);
    uint32_t point = first;
    if (first >= 0xc0) { // two bytes are all that occur
      if (first >= 0xe0 || i == written.size())
        return false;
      point = (first & 31u) << 6 | (static_cast<unsigned char>(written[i++]) & 63u);
    }
    auto byte = visible.find(point);
    if (byte == visible.end())
      return false;
    bytes += byte->second;
  }
  return true;
}

// Bytes of a piece that are one token so far.
struct Part {
  size_t previous, next; // where the neighbours begin
  int64_t rank;          // of joining it with the next; -1: not to be joined
};

bool fromBase64(const std::string &text, std::string &bytes) {
  static const std::string digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t bits = 0;
  int count = 0;
  bytes.clear();
  for (char c : text.substr(0, text.find('='))) {
    size_t digit = digits.find(c);
    if (digit == std::string::npos)
      return false;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8)
      bytes += static_cast<char>(bits >> (count -= 8));
  }
  return !bytes.empty();
}

} // namespace

BytePairs::BytePairs(const std::string &vocabulary, const std::string &merges,
                     const std::string &split)
    : path_(vocabulary), pattern_(std::make_unique<Pattern>()) {
  if (merges.empty()) {
    readRanks(vocabulary);
  } else {
    readVocabulary(vocabulary);
    readMerges(merges);
  }
  for (auto &[bytes, id] : ids_)
    largest_ = std::max<int64_t>(largest_, id);
  for (auto &[name, id] : named_)
    largest_ = std::max<int64_t>(largest_, id);
  compile(split);
}

BytePairs::~BytePairs() = default;

void BytePairs::readVocabulary(const std::string &path) {
  auto object = bounded_json(contentsOf(path), kDeepestVocabulary);
  if (!object.is_object())
    throw failure(exit_data, path +
                                 ": is not a vocabulary: a JSON object of tokens and their ids is "
                                 "expected\n  try: GPT-2's vocab.json with --merges, or a file "
                                 "of ranks without");
  for (auto &[token, id] : object.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      throw failure(exit_data,
                    path + ": token '" + token + "' has " +
                        (id.is_number() ? "the id " + id.dump()
                                        : std::string("no id, but a JSON ") + id.type_name()));
    named_[token] = id.get<uint32_t>();
    if (std::string bytes; bytesOf(token, bytes))
      ids_[bytes] = id.get<uint32_t>();
  }
}

void BytePairs::readMerges(const std::string &path) {
  std::istringstream lines(contentsOf(path));
  int64_t rank = 0, number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (line.empty() || (number == 1 && line.rfind("#version", 0) == 0))
      continue;
    size_t space = line.find(' ');
    std::string left, right;
    if (space == std::string::npos || !bytesOf(line.substr(0, space), left) ||
        !bytesOf(line.substr(space + 1), right))
      throw failure(exit_data, format_text("%s: line %lld is not a pair of tokens", path.c_str(),
                                           static_cast<long long>(number)));
    if (!ids_.count(left + right))
      throw failure(exit_data,
                    format_text("%s: line %lld makes a token that %s does not have", path.c_str(),
                                static_cast<long long>(number), path_.c_str()));
    merges_[left + right].push_back({left.size(), rank++});
  }
}

void BytePairs::readRanks(const std::string &path) {
  wholePieces_ = true; // as tiktoken does
  std::istringstream lines(contentsOf(path));
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty())
      continue;
    std::istringstream words(line);
    std::string token, bytes;
    int64_t rank = -1;
    if (!(words >> token >> rank) || !fromBase64(token, bytes) || rank < 0 || rank > INT32_MAX)
      throw failure(exit_data,
                    format_text("%s: line %lld is not a token in base 64 and its rank\n  "
                                "try: --merges merges.txt with GPT-2's vocab.json",
                                path.c_str(), static_cast<long long>(number)));
    ids_[bytes] = static_cast<uint32_t>(rank);
    if (bytes.size() > 1)
      merges_[bytes] = {{0, rank}};
  }
}

void BytePairs::compile(const std::string &split) {
  std::string pattern = split;
  for (const NamedPattern &known : kPatterns)
    if (split == known.name)
      pattern = known.pattern;
  int error = 0;
  size_t where = 0;
  pattern_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.c_str()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &where, nullptr);
  if (!pattern_->code) {
    PCRE2_UCHAR message[200];
    pcre2_get_error_message(error, message, sizeof message);
    throw failure(exit_usage, format_text("option --split: at character %zu: %s", where,
                                          reinterpret_cast<const char *>(message)));
  }
  pcre2_jit_compile(pattern_->code, PCRE2_JIT_COMPLETE); // faster where there is one
  pattern_->match = pcre2_match_data_create(1, nullptr);
}

int64_t BytePairs::rankOf(std::string_view bytes, size_t left) const {
  auto found = merges_.find(std::string(bytes));
  if (found != merges_.end())
    for (const Merge &merge : found->second)
      if (merge.left == 0 || merge.left == left)
        return merge.rank;
  return -1;
}

const std::vector<uint32_t> &BytePairs::encodePiece(std::string_view piece) {
  if (known_.size() >= kMostKnownPieces)
    known_.clear();
  auto [entry, isNew] = known_.try_emplace(std::string(piece));
  std::vector<uint32_t> &tokens = entry->second;
  if (!isNew)
    return tokens;
  if (auto whole = ids_.find(entry->first); wholePieces_ && whole != ids_.end()) {
    tokens = {whole->second};
    return tokens;
  }
  const size_t end = piece.size();
  std::vector<Part> parts(end); // by the byte that they begin with
  // The joinings that are possible, the lowest rank and then the first part in front. One that a
  // joining beside it undid stays in the queue, but the part has another rank by then.
  std::priority_queue<std::pair<int64_t, size_t>, std::vector<std::pair<int64_t, size_t>>,
                      std::greater<>>
      joinings;
  auto rank = [&](size_t at) {
    size_t middle = parts[at].next;
    parts[at].rank =
        middle == end ? -1 : rankOf(piece.substr(at, parts[middle].next - at), middle - at);
    if (parts[at].rank >= 0)
      joinings.emplace(parts[at].rank, at);
  };
  for (size_t at = 0; at < end; ++at)
    parts[at] = {at - (at > 0), at + 1, -1};
  for (size_t at = 0; at < end; ++at)
    rank(at);
  while (!joinings.empty()) {
    auto [lowest, at] = joinings.top();
    joinings.pop();
    if (parts[at].rank != lowest)
      continue;
    Part &joined = parts[parts[at].next];
    parts[at].next = joined.next;
    joined.rank = -1; // it is not a part any more
    if (joined.next < end)
      parts[joined.next].previous = at;
    rank(at);
    if (at > 0)
      rank(parts[at].previous);
  }
  for (size_t at = 0; at < end; at = parts[at].next) {
    std::string part(piece.substr(at, parts[at].next - at));
    auto id = ids_.find(part);
    if (id == ids_.end())
      throw failure(exit_data, format_text("%s: has no token for the byte 0x%02x", path_.c_str(),
                                           static_cast<unsigned char>(part[0])));
    tokens.push_back(id->second);
  }
  return tokens;
}

size_t BytePairs::encode(std::string_view text, bool last, std::vector<uint32_t> &tokens) {
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t at = 0;
  while (at < text.size() && (last || at + kMargin < text.size())) {
    // The caller has checked that it is UTF-8.
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED;
    auto match = [&] {
      return pcre2_match(pattern_->code, subject, text.size(), at, options, pattern_->match,
                         nullptr);
    };
    int found = match();
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) { // a long piece: slower, with memory as needed
      options |= PCRE2_NO_JIT;
      found = match();
    }
    const size_t *range = pcre2_get_ovector_pointer(pattern_->match);
    if (found < 0 || range[1] == at)
      throw failure(exit_usage, "option --split: the pattern leaves out '" +
                                    std::string(text.substr(at, 20)) + "...'");
    if (!last && range[1] + kMargin / 2 > text.size())
      break; // a very long piece
    const std::vector<uint32_t> &piece = encodePiece(text.substr(at, range[1] - at));
    tokens.insert(tokens.end(), piece.begin(), piece.end());
    at = range[1];
  }
  return at;
}

uint32_t BytePairs::idOf(const std::string &token, const std::string &option) const {
  if (auto found = named_.find(token); found != named_.end())
    return found->second;
  if (auto found = ids_.find(token); found != ids_.end())
    return found->second;
  bool isNumber = !token.empty() && token.size() < 10 &&
                  token.find_first_not_of("0123456789") == std::string::npos;
  if (!isNumber)
    throw failure(exit_usage, "option " + option + ": " + path_ + " has no token '" + token +
                                  "'\n  try: its number");
  return static_cast<uint32_t>(std::stoul(token));
}

} // namespace trainc::data
