// SPDX-License-Identifier: Apache-2.0
//
// Reads the header of a .npy file: magic, version, length, and a Python dict
// literal of three known keys. Strict: anything unexpected is an error, since
// the file comes from outside.
#include "runtime/files/npy.h"

#include "runtime/failure.h"

#include <cstring>
#include <string_view>

namespace trainc {
namespace {

constexpr int64_t largest_npy_header = 1 << 20; // NumPy itself refuses above 10,000 by default

// Walks the dict literal.
class header_parser {
public:
  header_parser(const std::string &path, std::string_view text) : path_(path), text_(text) {}

  void parse(npy_header &header) {
    expect('{');
    bool seen_type = false, seen_order = false, seen_shape = false;
    while (!accept('}')) {
      std::string key = string_literal();
      expect(':');
      if (key == "descr" && !seen_type) {
        header.type = type_of(string_literal());
        seen_type = true;
      } else if (key == "fortran_order" && !seen_order) {
        if (accept_word("True"))
          refuse("is in Fortran order", "numpy.save of numpy.ascontiguousarray(array)");
        if (!accept_word("False"))
          refuse("has a damaged header");
        seen_order = true;
      } else if (key == "shape" && !seen_shape) {
        shape(header.shape);
        seen_shape = true;
      } else {
        refuse("has a damaged header");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!seen_type || !seen_order || !seen_shape)
      refuse("has a damaged header");
  }

private:
  [[noreturn]] void refuse(const std::string &why, const char *hint = nullptr) {
    throw failure(exit_data, path_ + ": " + without_controls(why) +
                                 (hint ? std::string("\n  try: ") + hint : std::string()));
  }
  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n'))
      ++position_;
  }
  bool accept(char wanted) {
    skip_blanks();
    if (position_ >= text_.size() || text_[position_] != wanted)
      return false;
    ++position_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted))
      refuse("has a damaged header");
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (text_.substr(position_, word.size()) != word)
      return false;
    position_ += word.size();
    return true;
  }
  std::string string_literal() {
    skip_blanks();
    char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote == '[')
      refuse("holds records, not an array of numbers");
    if (quote != '\'' && quote != '"')
      refuse("has a damaged header");
    size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos)
      refuse("has a damaged header");
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }
  file_type type_of(const std::string &code) {
    if (code.size() == 3)
      for (const data_type_row &row : data_type_rows)
        if (code.compare(1, 2, row.npy) == 0) {
          if (code[0] == '>' && row.bytes > 1)
            refuse("is big-endian", "array.astype(array.dtype.newbyteorder('<'))");
          if (code[0] == '<' || code[0] == '|' || code[0] == '=' || code[0] == '>')
            return row.type;
        }
    refuse("has dtype '" + code + "', which is not supported");
  }
  void shape(std::vector<int64_t> &result) {
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      int64_t extent = 0;
      size_t first = position_;
      for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9';
           ++position_)
        if (__builtin_mul_overflow(extent, 10, &extent) ||
            __builtin_add_overflow(extent, text_[position_] - '0', &extent))
          refuse("has a shape that overflows");
      if (position_ == first || result.size() == 32)
        refuse("has a damaged header");
      accept_word("L"); // Python 2 wrote long integers so
      result.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  const std::string &path_;
  std::string_view text_;
  size_t position_ = 0;
};

} // namespace

std::optional<file_type> file_type_of(const std::string &name) {
  for (const data_type_row &row : data_type_rows)
    if (name == row.name)
      return row.type;
  return std::nullopt;
}

npy_header read_npy_header(const input_file &file) {
  auto refuse = [&](const std::string &why) { throw failure(exit_data, file.path() + ": " + why); };
  unsigned char start[12] = {};
  if (file.size() < 10)
    refuse("is not a .npy file: it has " + std::to_string(file.size()) + " bytes");
  file.read(0, start, std::min<int64_t>(12, file.size()));
  if (memcmp(start, "\x93NUMPY", 6) != 0)
    refuse("is not a .npy file");
  if (start[6] < 1 || start[6] > 3)
    refuse("has .npy version " + std::to_string(start[6]) + "; versions 1 to 3 are known");
  int64_t begin = start[6] == 1 ? 10 : 12;
  int64_t length = start[8] | start[9] << 8;
  if (start[6] > 1)
    length |= int64_t{start[10]} << 16 | int64_t{start[11]} << 24;
  if (length > largest_npy_header || begin + length > file.size())
    refuse("is truncated within its header");
  std::string text(static_cast<size_t>(length), '\0');
  file.read(begin, text.data(), length);

  npy_header header{};
  header_parser(file.path(), text).parse(header);
  header.data_offset = begin + length;
  header.element_count = 1;
  int64_t bytes = bytes_of(header.type);
  for (int64_t extent : header.shape)
    if (__builtin_mul_overflow(header.element_count, extent, &header.element_count))
      refuse("has a shape that overflows");
  if (__builtin_mul_overflow(header.element_count, bytes, &bytes))
    refuse("has a shape that overflows");
  if (file.size() - header.data_offset < bytes)
    refuse(format_text("is truncated: shape %s of %s needs %lld bytes of data, the file has %lld",
                       shape_text(header.shape).c_str(), name_of(header.type),
                       static_cast<long long>(bytes),
                       static_cast<long long>(file.size() - header.data_offset)));
  if (int64_t behind = file.size() - header.data_offset - bytes; behind > 0)
    refuse(format_text("has %lld bytes behind its data: shape %s of %s needs %lld, the file has "
                       "%lld\n  try: a file with one array, as numpy.save writes it",
                       static_cast<long long>(behind), shape_text(header.shape).c_str(),
                       name_of(header.type), static_cast<long long>(bytes),
                       static_cast<long long>(file.size() - header.data_offset)));
  return header;
}

std::string npy_header_of(file_type type, const std::vector<int64_t> &shape) {
  const data_type_row &row = row_of(type);
  std::string text = std::string("{'descr': '") + (row.bytes == 1 ? "|" : "<") + row.npy +
                     "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : shape)
    text += std::to_string(extent) + (shape.size() == 1 ? "," : ", ");
  text += "), }";
  constexpr size_t longest_number = 20, start = 10, alignment = 64;
  size_t first = shape.empty() ? 0 : std::to_string(shape[0]).size();
  size_t least = start + text.size() - first + longest_number + 1;
  size_t whole = (least + alignment - 1) / alignment * alignment;
  text.append(whole - start - 1 - text.size(), ' ');
  size_t length = whole - start;
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 255) +
         static_cast<char>(length >> 8) + text + "\n";
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t axis = 0; axis < shape.size(); ++axis)
    text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

} // namespace trainc
