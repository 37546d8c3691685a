// SPDX-License-Identifier: Apache-2.0
//
// --augment: what happens to the pictures of training batches. What happens to one follows from the
// seed and its number in training alone, so it is the same for any ranks, and after a resume.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainc {

// Of the values of a picture: channels, rows, columns.
struct picture_shape {
  int64_t channels, height, width;
};

struct augmentation {
  bool flips = false; // left and right, one picture in two
  int64_t crop = 0;   // moved by up to so many pixels each way; what comes in at a border is 0
  int64_t erase = 0;  // a square of so many pixels a side, partly outside at times, becomes 0

  // "flip,crop=4,erase=8", or nothing; `why` says what is wrong with another text.
  static bool parse(const std::string &text, augmentation &result, std::string &why);

  bool does_nothing() const { return !flips && crop == 0 && erase == 0; }
  // Changes a picture whose values have `bytes` each; `sample`: its number in training, over all
  // epochs. `before` has room for a picture.
  void apply(char *picture, const picture_shape &shape, int64_t bytes, uint64_t seed,
             int64_t sample, std::vector<char> &before) const;
};

} // namespace trainc
