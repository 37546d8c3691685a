// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding with a vocabulary from files: GPT-2's vocab.json and merges.txt, or ranks as
// tiktoken keeps them (a line for each token: its bytes in base 64 and its rank, which is its id).
//
// Text is cut into pieces by a pattern (a Perl regular expression over UTF-8); in each piece, of
// bytes at first, the pair with the lowest rank is joined until none is left. Sennrich, Haddow and
// Birch, "Neural machine translation of rare words with subword units", 2016; on bytes since GPT-2.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trainc::data {

class BytePairs {
public:
  /// `merges` is empty for a file of ranks. `split` is gpt2, cl100k, o200k or a pattern. Throws
  /// `failure`: exit_data for files, exit_usage for the pattern.
  BytePairs(const std::string &vocabulary, const std::string &merges, const std::string &split);
  ~BytePairs();

  /// Appends the tokens of the pieces of a text, and returns how many of its bytes they have.
  /// Unless the text is at its end (`last`), the pieces next to it are left, which may go on after
  /// it.
  size_t encode(std::string_view text, bool last, std::vector<uint32_t> &tokens);

  /// Id of a token by its text, or a number as it is. Throws `failure` (exit_usage), which names
  /// the option that gave it.
  uint32_t idOf(const std::string &token, const std::string &option) const;
  int64_t vocabularySize() const { return largest_ + 1; }

private:
  void readVocabulary(const std::string &path);
  void readMerges(const std::string &path);
  void readRanks(const std::string &path);
  void compile(const std::string &split);
  int64_t rankOf(std::string_view bytes, size_t left) const;
  const std::vector<uint32_t> &encodePiece(std::string_view piece);

  struct Merge {
    size_t left; // bytes of the left part; 0: any
    int64_t rank;
  };
  std::string path_;
  std::unordered_map<std::string, uint32_t> ids_;                // by a token's bytes
  std::unordered_map<std::string, uint32_t> named_;              // as the file writes them
  std::unordered_map<std::string, std::vector<Merge>> merges_;   // by the joined bytes
  std::unordered_map<std::string, std::vector<uint32_t>> known_; // pieces encoded before
  bool wholePieces_ = false; // a piece that is a token is not looked into
  int64_t largest_ = -1;
  struct Pattern;
  std::unique_ptr<Pattern> pattern_;
};

} // namespace trainc::data
