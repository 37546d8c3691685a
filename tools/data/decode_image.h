// SPDX-License-Identifier: Apache-2.0
//
// JPEG and PNG files as pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainc::data {

struct Image {
  int64_t height = 0, width = 0;
  std::vector<unsigned char> pixels; // rows of red, green, blue
  int orientation = 1;               // of a JPEG's EXIF: how it was held, 1 upright
};

/// Whether the name ends like that of an image that can be read.
bool isImageName(const std::string &path);

/// The pixels that Pillow's `Image.open(path).convert("RGB")` gives: samples as they are stored,
/// without the gamma or profile that the file names; without transparency; not turned as
/// orientation tags say. Of 16 bits the upper 8, of grey ones too. Throws `failure` (exit_data).
Image decodeImage(const std::string &path);

/// Planes [channels][height][width] in 0 to 255: one channel is the luminance of ITU-R 601, three
/// are red, green, blue. A part of the image of the wanted proportions, in its middle, or all of it
/// where `stretches`, is resized with a triangle filter as wide as a target pixel, so that nothing
/// is aliased. The same size gives the pixels as they are.
std::vector<float> resized(const Image &image, int64_t channels, int64_t height, int64_t width,
                           bool stretches);

} // namespace trainc::data
