// SPDX-License-Identifier: Apache-2.0
//
// Which encoding a text has.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainc {
class input_file;
}

namespace trainc::data {

/// How far a text is UTF-8.
struct Utf8Part {
  size_t whole;  // bytes of whole characters at its beginning
  bool isBroken; // what follows is not the beginning of a character, either
};
Utf8Part utf8Part(std::string_view text);

/// The first byte that belongs to no character of UTF-8, in the form 0xe9; empty where there is
/// none.
std::string foreignByte(std::string_view text);

/// Name of the encoding of a file that is UTF-16 or UTF-32 by its byte order mark or, without one,
/// by where its zero bytes are; empty for all others.
std::string wideEncoding(const input_file &file);

/// Bytes of the byte order mark of UTF-8 that the file begins with: 3 or 0.
size_t markBytes(const input_file &file);

/// A command that makes UTF-8 of the file.
std::string conversionOf(const std::string &path, const std::string &encoding);

} // namespace trainc::data
