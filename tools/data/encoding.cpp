// SPDX-License-Identifier: Apache-2.0
//
// Recognition of UTF-8, UTF-16 and UTF-32.
#include "tools/data/encoding.h"

#include "runtime/failure.h"
#include "runtime/files/file_operations.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <utility>

namespace trainc::data {
namespace {

constexpr int64_t kSampleBytes = 4096; // from which an encoding is told

std::string beginningOf(const input_file &file) {
  std::string text(static_cast<size_t>(std::min(kSampleBytes, file.size())), '\0');
  file.read(0, text.data(), static_cast<int64_t>(text.size()));
  return text;
}

// Of a character by its first byte; 0: no character begins so.
size_t characterBytes(unsigned char first) {
  return first < 0x80   ? 1
         : first < 0xc2 ? 0
         : first < 0xe0 ? 2
         : first < 0xf0 ? 3
         : first < 0xf5 ? 4
                        : 0;
}

// Text of most languages has letters, blanks, digits and line breaks below 256, whose upper bytes
// are zero.
std::string encodingByZeros(const std::string &text) {
  std::array<size_t, 4> zeros = {};
  const size_t quarters = text.size() / 4;
  for (size_t i = 0; i < 4 * quarters; ++i)
    zeros[i % 4] += text[i] == '\0';
  if (quarters == 0)
    return "";
  if (zeros[3] == quarters && 2 * zeros[2] >= quarters && 2 * zeros[0] < quarters)
    return "UTF-32LE";
  if (zeros[0] == quarters && 2 * zeros[1] >= quarters && 2 * zeros[3] < quarters)
    return "UTF-32BE";
  const size_t even = zeros[0] + zeros[2], odd = zeros[1] + zeros[3];
  if (2 * odd >= quarters && odd > 4 * even) // in a quarter of the pairs, that is
    return "UTF-16LE";
  if (2 * even >= quarters && even > 4 * odd)
    return "UTF-16BE";
  return "";
}

} // namespace

Utf8Part utf8Part(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = characterBytes(byte);
    bool good = length > 0;
    for (size_t j = 1; j < length && i + j < text.size(); ++j)
      good &= (static_cast<unsigned char>(text[i + j]) & 0xc0) == 0x80;
    if (good && length > 2 && i + 1 < text.size()) { // overlong, surrogates, beyond the last plane
      auto next = static_cast<unsigned char>(text[i + 1]);
      good = !(byte == 0xe0 && next < 0xa0) && !(byte == 0xed && next > 0x9f) &&
             !(byte == 0xf0 && next < 0x90) && !(byte == 0xf4 && next > 0x8f);
    }
    if (!good || i + length > text.size())
      return {i, !good};
    i += length;
  }
  return {i, false};
}

std::string foreignByte(std::string_view text) {
  const size_t whole = utf8Part(text).whole;
  return whole == text.size()
             ? ""
             : format_text("0x%02x", unsigned{static_cast<unsigned char>(text[whole])});
}

std::string wideEncoding(const input_file &file) {
  using namespace std::string_literals;
  static const std::pair<std::string, const char *> marks[] = {
      {"\xff\xfe\0\0"s, "UTF-32"}, // before UTF-16's, with which it begins
      {"\0\0\xfe\xff"s, "UTF-32"},
      {"\xff\xfe"s, "UTF-16"},
      {"\xfe\xff"s, "UTF-16"},
  };
  const std::string text = beginningOf(file);
  for (const auto &[mark, name] : marks)
    if (text.compare(0, mark.size(), mark) == 0)
      return name;
  return encodingByZeros(text);
}

size_t markBytes(const input_file &file) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  return beginningOf(file).compare(0, mark.size(), mark) == 0 ? mark.size() : 0;
}

std::string conversionOf(const std::string &path, const std::string &encoding) {
  const std::filesystem::path from = path;
  const std::string name = from.stem().string() + "-utf8" + from.extension().string();
  return "iconv -f " + encoding + " -t UTF-8 '" + path + "' >'" +
         (from.parent_path() / name).string() + "'";
}

} // namespace trainc::data
