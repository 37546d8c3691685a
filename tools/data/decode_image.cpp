// SPDX-License-Identifier: Apache-2.0
//
// Decoding by libjpeg and libpng, and resizing.
#include "tools/data/decode_image.h"

#include "runtime/failure.h"
#include "runtime/files/file_operations.h"

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio> // before jpeglib.h, which uses it
#include <cstring>
#include <jpeglib.h>
#include <png.h>

namespace trainc::data {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 28; // 16384 x 16384: a header may say anything
constexpr char kTooManyPixels[] = "it has more than 2^28 pixels";

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

// Warnings are about damaged data, which libjpeg decodes nevertheless: an error here.
void noteJpeg(j_common_ptr decoder, int level) {
  if (level < 0)
    stopJpeg(decoder);
}

// What the EXIF part of a file says of how the picture was held: 1 to 8, where 1 is upright.
int orientationOf(const unsigned char *exif, size_t size) {
  constexpr size_t entryBytes = 12, orientationTag = 0x0112;
  auto number = [&](size_t at, size_t bytes) {
    size_t value = 0;
    if (at > size || size - at < bytes)
      return value;
    for (size_t i = 0; i < bytes; ++i) // "II": little-endian, "MM": big-endian
      value |= size_t{exif[exif[0] == 'I' ? at + i : at + bytes - 1 - i]} << 8 * i;
    return value;
  };
  size_t directory = number(4, 4), entries = number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    size_t entry = directory + 2 + i * entryBytes, value = number(entry + 8, 2);
    if (number(entry, 2) == orientationTag && value >= 1 && value <= 8)
      return static_cast<int>(value);
  }
  return 1;
}

int orientationOf(jpeg_saved_marker_ptr marker) {
  constexpr size_t nameBytes = 6;
  for (; marker; marker = marker->next)
    if (marker->data_length > nameBytes && memcmp(marker->data, "Exif\0", nameBytes) == 0)
      return orientationOf(marker->data + nameBytes, marker->data_length - nameBytes);
  return 1;
}

// Ink to light as Pillow does it: Adobe's programs store cyan, magenta, yellow and black inverted,
// and files of others are taken for theirs.
void printToScreen(std::vector<unsigned char> &pixels) {
  auto product = [](unsigned a, unsigned b) { // of two parts of 255, rounded
    unsigned value = a * b + 128;
    return ((value >> 8) + value) >> 8;
  };
  size_t count = pixels.size() / 4;
  for (size_t i = 0; i < count; ++i) {
    const unsigned light = pixels[4 * i + 3];
    for (size_t channel = 0; channel < 3; ++channel)
      pixels[3 * i + channel] = static_cast<unsigned char>(
          light - product(255 - unsigned{pixels[4 * i + channel]}, light));
  }
  pixels.resize(3 * count);
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
  jpeg_save_markers(&decoder, JPEG_APP0 + 1, 0xffff); // EXIF
  jpeg_mem_src(&decoder, bytes.data(), bytes.size());
  jpeg_read_header(&decoder, TRUE);
  image.orientation = orientationOf(decoder.marker_list);
  int64_t pixels = int64_t{decoder.image_height} * decoder.image_width;
  if (pixels > kMostPixels) {
    snprintf(errors.message, sizeof errors.message, "%s", kTooManyPixels);
    jpeg_destroy_decompress(&decoder);
    return false;
  }
  bool isPrint = decoder.jpeg_color_space == JCS_CMYK || decoder.jpeg_color_space == JCS_YCCK;
  decoder.out_color_space = isPrint ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&decoder);
  image.height = decoder.output_height;
  image.width = decoder.output_width;
  const int64_t stride = decoder.output_components * image.width;
  image.pixels.resize(static_cast<size_t>(decoder.output_components * pixels));
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = image.pixels.data() + stride * int64_t{decoder.output_scanline};
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
  if (isPrint)
    printToScreen(image.pixels);
  return true;
}

struct PngSource {
  const std::vector<unsigned char> &bytes;
  size_t at = 0;
  char message[256] = "";
};

// Warnings are about damaged data here, too: chunks that are not needed are not looked into.
[[noreturn]] void stopPng(png_structp decoder, png_const_charp message) {
  auto *source = static_cast<PngSource *>(png_get_error_ptr(decoder));
  snprintf(source->message, sizeof source->message, "%s", message);
  png_longjmp(decoder, 1);
}

void readPngBytes(png_structp decoder, png_bytep to, size_t count) {
  auto *source = static_cast<PngSource *>(png_get_io_ptr(decoder));
  if (source->bytes.size() - source->at < count)
    png_error(decoder, "it ends early");
  memcpy(to, source->bytes.data() + source->at, count);
  source->at += count;
}

// One index a pixel, in the first third of `pixels`, to colours: from the end, so that none is
// overwritten before it is read.
void indexesToColours(png_structp decoder, png_infop header, std::vector<unsigned char> &pixels) {
  png_colorp palette = nullptr;
  int colours = 0;
  png_get_PLTE(decoder, header, &palette, &colours);
  for (size_t i = pixels.size() / 3; i-- > 0;) {
    const unsigned index = pixels[i];
    if (static_cast<int>(index) >= colours)
      png_error(decoder, "it has a colour that its palette lacks");
    pixels[3 * i] = palette[index].red;
    pixels[3 * i + 1] = palette[index].green;
    pixels[3 * i + 2] = palette[index].blue;
  }
}

// The samples as they are stored, in 8 bits: the upper ones of 16, and fewer spread from 0 to 255.
// Makes no object that has a destructor.
void readPng(png_structp decoder, png_infop header, Image &image) {
  // Of the chunks that libpng knows only those of the pixels count: no gamma, profile,
  // transparency.
  png_set_keep_unknown_chunks(decoder, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_keep_unknown_chunks(decoder, PNG_HANDLE_CHUNK_NEVER,
                              reinterpret_cast<png_const_bytep>("tRNS"), 1);
  png_set_benign_errors(decoder, 0);
  png_read_info(decoder, header);
  image.height = png_get_image_height(decoder, header);
  image.width = png_get_image_width(decoder, header);
  if (image.height * image.width > kMostPixels)
    png_error(decoder, kTooManyPixels);
  png_set_packing(decoder);
  png_set_strip_16(decoder);
  png_set_strip_alpha(decoder);
  bool isPalette = png_get_color_type(decoder, header) == PNG_COLOR_TYPE_PALETTE;
  if (!isPalette)
    png_set_gray_to_rgb(decoder); // and fewer bits than 8 to 8
  int passes = png_set_interlace_handling(decoder);
  png_read_update_info(decoder, header);
  image.pixels.resize(static_cast<size_t>(3 * image.height * image.width));
  const int64_t stride = image.width * (isPalette ? 1 : 3);
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t y = 0; y < image.height; ++y)
      png_read_row(decoder, image.pixels.data() + y * stride, nullptr);
  if (isPalette)
    indexesToColours(decoder, header, image.pixels);
}

bool decodePng(Image &image, PngSource &source) {
  png_structp decoder = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, stopPng, stopPng);
  png_infop header = decoder ? png_create_info_struct(decoder) : nullptr;
  if (!header) {
    png_destroy_read_struct(&decoder, nullptr, nullptr);
    throw std::bad_alloc();
  }
  if (setjmp(png_jmpbuf(decoder))) {
    png_destroy_read_struct(&decoder, &header, nullptr);
    return false;
  }
  png_set_read_fn(decoder, &source, readPngBytes);
  readPng(decoder, header, image);
  png_destroy_read_struct(&decoder, &header, nullptr);
  return true;
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
    PngSource source = {bytes};
    if (!decodePng(image, source))
      problem = source.message;
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
