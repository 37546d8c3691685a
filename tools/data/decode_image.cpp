// SPDX-License-Identifier: Apache-2.0
//
// Decoding by libjpeg and libpng, and resizing.
#include "tools/data/decode_image.h"

#include "runtime/failure.h"
#include "runtime/file_operations.h"

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio> // before jpeglib.h, which uses it
#include <jpeglib.h>
#include <png.h>

namespace trainc::data {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 28; // 16384 x 16384: a header may say anything

std::string endingOf(const std::string &path) {
  std::string ending = path.substr(std::min(path.rfind('.'), path.size()));
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return ending;
}

struct JpegErrors {
  jpeg_error_mgr manager;
  jmp_buf handler;
  char message[JMSG_LENGTH_MAX];
};

void stopJpeg(j_common_ptr decoder) {
  auto *errors = reinterpret_cast<JpegErrors *>(decoder->err);
  errors->manager.format_message(decoder, errors->message);
  longjmp(errors->handler, 1);
}

// Warnings are about damaged data, of which libjpeg makes something: an error here.
void noteJpeg(j_common_ptr decoder, int level) {
  if (level < 0)
    stopJpeg(decoder);
}

// Between setjmp and longjmp no object may be made that has a destructor: the caller has them all.
bool decodeJpeg(const std::vector<unsigned char> &bytes, Image &image, JpegErrors &errors) {
  jpeg_decompress_struct decoder;
  decoder.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = stopJpeg;
  errors.manager.emit_message = noteJpeg;
  if (setjmp(errors.handler)) {
    jpeg_destroy_decompress(&decoder);
    return false;
  }
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, bytes.data(), bytes.size());
  jpeg_read_header(&decoder, TRUE);
  bool isPrint = decoder.jpeg_color_space == JCS_CMYK || decoder.jpeg_color_space == JCS_YCCK;
  int64_t pixels = int64_t{decoder.image_height} * decoder.image_width;
  if (isPrint || pixels > kMostPixels) {
    snprintf(errors.message, sizeof errors.message,
             isPrint ? "its colours are CMYK, for print" : "it has more than 2^28 pixels");
    jpeg_destroy_decompress(&decoder);
    return false;
  }
  decoder.out_color_space = JCS_RGB;
  jpeg_start_decompress(&decoder);
  image.height = decoder.output_height;
  image.width = decoder.output_width;
  image.pixels.resize(static_cast<size_t>(3 * pixels));
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = image.pixels.data() + 3 * image.width * int64_t{decoder.output_scanline};
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
  return true;
}

std::string decodePng(const std::vector<unsigned char> &bytes, Image &image) {
  png_image decoder = {};
  decoder.version = PNG_IMAGE_VERSION;
  std::string problem;
  if (!png_image_begin_read_from_memory(&decoder, bytes.data(), bytes.size()))
    return decoder.message;
  if (int64_t{decoder.height} * decoder.width > kMostPixels)
    problem = "it has more than 2^28 pixels";
  std::vector<unsigned char> pixels;
  if (problem.empty()) {
    decoder.format = PNG_FORMAT_RGBA;
    decoder.flags |= PNG_IMAGE_FLAG_16BIT_sRGB; // 16 bits are cut to 8, as others do
    pixels.resize(PNG_IMAGE_SIZE(decoder));
    if (!png_image_finish_read(&decoder, nullptr, pixels.data(), 0, nullptr) ||
        decoder.warning_or_error != 0)
      problem = decoder.message;
  }
  image.height = decoder.height;
  image.width = decoder.width;
  png_image_free(&decoder);
  for (size_t i = 0; problem.empty() && i < pixels.size(); i += 4)
    image.pixels.insert(image.pixels.end(), {pixels[i], pixels[i + 1], pixels[i + 2]});
  return problem;
}

/// For each target position: the first source position and the weights from there on.
struct Filter {
  std::vector<int64_t> first;
  std::vector<std::vector<double>> weights;
};

// Of the part [begin, begin + length) of `size` positions.
Filter filterFor(int64_t size, double begin, double length, int64_t target) {
  Filter filter;
  double scale = length / static_cast<double>(target), support = std::max(1.0, scale);
  for (int64_t i = 0; i < target; ++i) {
    double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    auto low = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - support)));
    auto high = std::min<int64_t>(size, static_cast<int64_t>(std::ceil(centre + support)));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = low; j < high; ++j) {
      double distance = std::abs(static_cast<double>(j) + 0.5 - centre) / support;
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    for (double &weight : weights)
      weight /= sum;
    filter.first.push_back(low);
    filter.weights.push_back(std::move(weights));
  }
  return filter;
}

} // namespace

bool isImageName(const std::string &path) {
  std::string ending = endingOf(path);
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

Image decodeImage(const std::string &path) {
  input_file file(path, exit_data);
  std::vector<unsigned char> bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes.data(), file.size());
  Image image;
  std::string problem;
  if (bytes.size() > 8 && png_sig_cmp(bytes.data(), 0, 8) == 0) {
    problem = decodePng(bytes, image);
  } else if (bytes.size() > 2 && bytes[0] == 0xff && bytes[1] == 0xd8) {
    JpegErrors errors = {};
    if (!decodeJpeg(bytes, image, errors))
      problem = errors.message;
  } else {
    problem = "it is neither JPEG nor PNG";
  }
  if (!problem.empty())
    throw failure(exit_data, path + ": cannot be read: " + problem);
  return image;
}

std::vector<float> resized(const Image &image, int64_t channels, int64_t height, int64_t width,
                           bool stretches) {
  double tall = static_cast<double>(image.height), wide = static_cast<double>(image.width);
  double proportion = static_cast<double>(width) / static_cast<double>(height);
  if (!stretches && wide > tall * proportion)
    wide = tall * proportion;
  else if (!stretches)
    tall = wide / proportion;
  Filter down =
      filterFor(image.height, (static_cast<double>(image.height) - tall) / 2, tall, height);
  Filter across =
      filterFor(image.width, (static_cast<double>(image.width) - wide) / 2, wide, width);

  std::vector<float> result(static_cast<size_t>(channels * height * width));
  std::vector<double> rows(static_cast<size_t>(image.height * width));
  for (int64_t channel = 0; channel < channels; ++channel) {
    auto value = [&](int64_t y, int64_t x) -> double {
      const unsigned char *pixel = image.pixels.data() + 3 * (y * image.width + x);
      if (channels == 3)
        return pixel[channel];
      return (19595 * pixel[0] + 38470 * pixel[1] + 7471 * pixel[2] + 32768) >> 16;
    };
    for (int64_t y = 0; y < image.height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const std::vector<double> &weights = across.weights[static_cast<size_t>(x)];
        double sum = 0;
        for (size_t i = 0; i < weights.size(); ++i)
          sum +=
              weights[i] * value(y, across.first[static_cast<size_t>(x)] + static_cast<int64_t>(i));
        rows[static_cast<size_t>(y * width + x)] = sum;
      }
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const std::vector<double> &weights = down.weights[static_cast<size_t>(y)];
        double sum = 0;
        for (size_t i = 0; i < weights.size(); ++i)
          sum += weights[i] *
                 rows[static_cast<size_t>(
                     (down.first[static_cast<size_t>(y)] + static_cast<int64_t>(i)) * width + x)];
        result[static_cast<size_t>((channel * height + y) * width + x)] = static_cast<float>(sum);
      }
  }
  return result;
}

} // namespace trainc::data
