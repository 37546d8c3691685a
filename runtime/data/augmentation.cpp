// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/augmentation.h"

#include "runtime/random.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace trainc {
namespace {

// Each has numbers of its own, so that one more choice changes no other.
enum choice : uint32_t { is_flipped, row_moved, column_moved, row_erased, column_erased };

class draw {
public:
  draw(uint64_t seed, int64_t sample) : seed_(seed), sample_(static_cast<uint64_t>(sample)) {}

  // One of 0 to count - 1.
  int64_t below(int64_t count, choice what) const {
    const uint64_t bits = random_bits(seed_, random_stream::augmentation, sample_, what);
    return static_cast<int64_t>(bits % static_cast<uint64_t>(count));
  }

private:
  uint64_t seed_, sample_;
};

// A row of pixels, from one that was moved by `columns`.
void move_row(char *to, const char *from, int64_t width, int64_t columns, bool flips,
              int64_t bytes) {
  for (int64_t column = 0; column < width; ++column) {
    const int64_t place = (flips ? width - 1 - column : column) + columns;
    if (place >= 0 && place < width)
      memcpy(to + column * bytes, from + place * bytes, static_cast<size_t>(bytes));
    else
      memset(to + column * bytes, 0, static_cast<size_t>(bytes));
  }
}

void move(char *picture, const picture_shape &of, int64_t rows, int64_t columns, bool flips,
          int64_t bytes, std::vector<char> &before) {
  const int64_t row_bytes = of.width * bytes, plane_bytes = of.height * row_bytes;
  memcpy(before.data(), picture, static_cast<size_t>(of.channels * plane_bytes));
  for (int64_t channel = 0; channel < of.channels; ++channel)
    for (int64_t row = 0; row < of.height; ++row) {
      char *to = picture + channel * plane_bytes + row * row_bytes;
      const int64_t place = row + rows;
      if (place < 0 || place >= of.height)
        memset(to, 0, static_cast<size_t>(row_bytes));
      else
        move_row(to, before.data() + channel * plane_bytes + place * row_bytes, of.width, columns,
                 flips, bytes);
    }
}

// The square with its middle at a pixel of the picture.
void erase_square(char *picture, const picture_shape &of, int64_t row, int64_t column, int64_t side,
                  int64_t bytes) {
  const int64_t top = std::max<int64_t>(row - side / 2, 0),
                bottom = std::min(row - side / 2 + side, of.height),
                left = std::max<int64_t>(column - side / 2, 0),
                right = std::min(column - side / 2 + side, of.width);
  for (int64_t channel = 0; channel < of.channels; ++channel)
    for (int64_t at = top; at < bottom; ++at)
      memset(picture + ((channel * of.height + at) * of.width + left) * bytes, 0,
             static_cast<size_t>(std::max<int64_t>(right - left, 0) * bytes));
}

bool read_pixels(const std::string &text, int64_t &value) {
  const char *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  constexpr int64_t most = 1 << 20;
  return error == std::errc() && stop == end && value >= 1 && value <= most;
}

} // namespace

bool augmentation::parse(const std::string &text, augmentation &result, std::string &why) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::string name = word.substr(0, word.find('='));
    int64_t *pixels = name == "crop" ? &result.crop : name == "erase" ? &result.erase : nullptr;
    if (word == "flip")
      result.flips = true;
    else if (!pixels || name == word || !read_pixels(word.substr(name.size() + 1), *pixels)) {
      why = "'" + word + "' is none of flip, crop=PIXELS and erase=PIXELS";
      return false;
    }
    begin = end + 1;
  }
  return true;
}

void augmentation::apply(char *picture, const picture_shape &shape, int64_t bytes, uint64_t seed,
                         int64_t sample, std::vector<char> &before) const {
  const draw drawn(seed, sample);
  const bool flips_this = flips && drawn.below(2, is_flipped) == 1;
  const int64_t rows = drawn.below(2 * crop + 1, row_moved) - crop,
                columns = drawn.below(2 * crop + 1, column_moved) - crop;
  if (flips_this || rows != 0 || columns != 0)
    move(picture, shape, rows, columns, flips_this, bytes, before);
  if (erase > 0)
    erase_square(picture, shape, drawn.below(shape.height, row_erased),
                 drawn.below(shape.width, column_erased), erase, bytes);
}

} // namespace trainc
