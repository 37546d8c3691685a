// SPDX-License-Identifier: Apache-2.0
//
// `trainc-data images`: arrays from a folder of images, whose classes are its folders.
#include "tools/data/commands.h"
#include "tools/data/data_file.h"
#include "tools/data/decode_image.h"
#include "tools/data/encoding.h"

#include "runtime/failure.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <filesystem>
#include <memory>

namespace trainc::data {
namespace {

namespace fs = std::filesystem;

struct Found {
  std::string path;
  int64_t label;
};

class ImagesCommand {
public:
  explicit ImagesCommand(const Arguments &arguments)
      : arguments_(arguments), channels_(arguments.text("channels") == "1" ? 1 : 3),
        stretches_(arguments.text("fit") == "stretch"), isBytes_(arguments.text("type") == "u8") {
    if (arguments.words.size() > 1)
      throw failure(exit_usage, "images: takes one folder; " + arguments.words[1] + " is another");
    if (arguments.has("size"))
      readSize(arguments.text("size"));
    measures_ = arguments.text("mean") == "measured";
    if (isBytes_ && (arguments.has("mean") || arguments.has("deviation")))
      throw failure(exit_usage, "option --mean and --deviation: of --type f32; u8 keeps 0 to 255");
    if (measures_ && arguments.has("deviation"))
      throw failure(exit_usage, "option --deviation: is measured with the mean");
    if (!measures_) {
      mean_ = perChannel("mean", 0);
      deviation_ = perChannel("deviation", 1);
    }
    for (double value : deviation_)
      if (!(value > 0))
        throw failure(exit_usage, "option --deviation: is above 0");
  }

  void run() {
    find();
    split_.emplace(static_cast<int64_t>(images_.size()), arguments_);
    auto passes = static_cast<int64_t>(images_.size()) * (measures_ ? 2 : 1);
    Progress progress("images", passes, arguments_.has("no-progress"));
    if (measures_)
      measure(progress);
    write(progress);
  }

private:
  void readSize(const std::string &text) {
    std::vector<double> numbers;
    for (const std::string &part : splitAt(text, 'x'))
      for (double number : numbersOf(part, "size"))
        numbers.push_back(number);
    if (numbers.size() == 1)
      numbers.push_back(numbers[0]);
    bool good = numbers.size() == 2;
    for (double number : numbers)
      good &= number >= 1 && number <= 16384 && number == std::floor(number);
    if (!good)
      throw failure(exit_usage, "option --size: '" + text + "' is neither N nor HEIGHTxWIDTH");
    height_ = static_cast<int64_t>(numbers[0]);
    width_ = static_cast<int64_t>(numbers[1]);
  }

  std::vector<double> perChannel(const std::string &option, double otherwise) const {
    auto count = static_cast<size_t>(channels_);
    if (!arguments_.has(option))
      return std::vector<double>(count, otherwise);
    std::vector<double> values = numbersOf(arguments_.text(option), option);
    if (values.size() == 1)
      values.resize(count, values[0]);
    if (values.size() != count)
      throw failure(exit_usage,
                    format_text("option --%s: %zu numbers, expected one for each of %zu "
                                "channels",
                                option.c_str(), values.size(), count));
    return values;
  }

  // Images below `folder`, in order of their names.
  std::vector<std::string> imagesBelow(const fs::path &folder, bool deep) {
    std::vector<std::string> paths;
    auto take = [&](const fs::directory_entry &entry) {
      if (!entry.is_regular_file())
        return;
      if (isImageName(entry.path()))
        paths.push_back(entry.path());
      else
        ++others_;
    };
    std::error_code error;
    if (deep)
      for (const auto &entry : fs::recursive_directory_iterator(folder, error))
        take(entry);
    else
      for (const auto &entry : fs::directory_iterator(folder, error))
        take(entry);
    if (error)
      throw failure(exit_data, folder.string() + ": cannot be read: " + error.message());
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  // Of a class. Manifests hold UTF-8.
  static std::string nameOf(const fs::path &folder) {
    std::string name = folder.filename();
    if (const std::string byte = foreignByte(name); !byte.empty())
      throw failure(exit_data, folder.string() + ": its name has the byte " + byte +
                                   ", which is not UTF-8\n  try: convmv -f WINDOWS-1252 -t UTF-8 "
                                   "--notest, or another encoding that it has");
    return name;
  }

  void find() {
    const std::string &folder = arguments_.words[0];
    for (std::string &path : imagesBelow(folder, /*deep=*/false))
      images_.push_back({std::move(path), 0});
    std::vector<fs::path> folders;
    for (const auto &entry : fs::directory_iterator(folder))
      if (entry.is_directory())
        folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    if (!folders.empty() && !images_.empty())
      throw failure(exit_data,
                    folder + ": has images beside folders of classes, such as " + images_[0].path);
    for (const fs::path &path : folders) {
      std::vector<std::string> paths = imagesBelow(path, /*deep=*/true);
      if (paths.empty())
        throw failure(exit_data, path.string() + ": is the folder of a class without images");
      for (std::string &image : paths)
        images_.push_back({std::move(image), static_cast<int64_t>(classes_.size())});
      classes_.push_back(nameOf(path));
      counts_.push_back(static_cast<int64_t>(paths.size()));
    }
    if (images_.empty())
      throw failure(exit_data, folder + ": has no .jpg, .jpeg or .png file");
  }

  std::vector<float> pixelsOf(const std::string &path) {
    Image image = decodeImage(path);
    if (image.orientation != 1 && turned_++ == 0)
      firstTurned_ = path;
    if (height_ == 0) {
      height_ = image.height;
      width_ = image.width;
    }
    if (!arguments_.has("size") && (image.height != height_ || image.width != width_))
      throw failure(exit_data,
                    format_text("%s: is %" PRId64 "x%" PRId64 ", but %s is %" PRId64 "x%" PRId64
                                "\n  try: --size %" PRId64 "x%" PRId64,
                                path.c_str(), image.height, image.width, images_[0].path.c_str(),
                                height_, width_, height_, width_));
    return resized(image, channels_, height_, width_, stretches_);
  }

  // Mean and deviation of each channel, of what is trained on.
  void measure(Progress &progress) {
    std::vector<double> sums(static_cast<size_t>(channels_)), squares(sums.size());
    double count = 0;
    for (size_t i = 0; i < images_.size(); ++i) {
      progress.at(++done_);
      if (split_->isValidation(static_cast<int64_t>(i)))
        continue;
      std::vector<float> pixels = pixelsOf(images_[i].path);
      size_t plane = pixels.size() / sums.size();
      for (size_t k = 0; k < pixels.size(); ++k) {
        double value = pixels[k] / 255.0;
        sums[k / plane] += value;
        squares[k / plane] += value * value;
      }
      count += static_cast<double>(plane);
    }
    for (size_t channel = 0; channel < sums.size(); ++channel) {
      double mean = sums[channel] / count, variance = squares[channel] / count - mean * mean;
      mean_.push_back(mean);
      deviation_.push_back(variance > 1e-12 ? std::sqrt(variance) : 1);
    }
  }

  void write(Progress &progress) {
    const std::string &folder = arguments_.text("output");
    makeFolder(folder);
    std::vector<std::string> read;
    for (const Found &found : images_)
      read.push_back(found.path);
    Outputs outputs(std::move(read));
    std::unique_ptr<SplitFile> x, labels;
    turned_ = 0; // those that are measured were counted
    for (const Found &found : images_) {
      std::vector<float> pixels = pixelsOf(found.path);
      if (!x) // now the size is known
        x = std::make_unique<SplitFile>(outputs, folder + "/x.npy",
                                        isBytes_ ? file_type::u8 : file_type::f32,
                                        std::vector<int64_t>{channels_, height_, width_}, *split_);
      if (!labels && !classes_.empty())
        labels = std::make_unique<SplitFile>(outputs, folder + "/labels.npy", file_type::i64,
                                             std::vector<int64_t>{}, *split_);
      append(*x, pixels);
      if (labels)
        labels->append(&found.label);
      progress.at(++done_);
    }
    nlohmann::ordered_json facts = {{"made", "trainc-data images"}};
    if (!isBytes_)
      facts.update({{"mean", mean_}, {"deviation", deviation_}});
    x->finish(facts);
    if (labels)
      labels->finish({{"made", "trainc-data images"}, {"classes", classes_}});
    outputs.publish();
    report();
  }

  void report() const {
    for (size_t i = 0; i < classes_.size(); ++i)
      printf("%s %zu = %s (%" PRId64 ")%s", i ? "," : "classes:", i, classes_[i].c_str(),
             counts_[i], i + 1 == classes_.size() ? "\n" : "");
    if (measures_)
      for (const auto *values : {&mean_, &deviation_})
        for (size_t i = 0; i < values->size(); ++i)
          printf("%s%.6g%s",
                 i                  ? ","
                 : values == &mean_ ? "mean "
                                    : "deviation ",
                 (*values)[i], i + 1 == values->size() ? "\n" : "");
    if (others_ > 0)
      printf("%" PRId64 " files that are no .jpg, .jpeg or .png are left out\n", others_);
    if (turned_ > 0)
      printf("%" PRId64 " images have an orientation tag (EXIF), which is not followed, such as "
             "%s\n  try: exiftran -ai, where they are to be turned\n",
             turned_, firstTurned_.c_str());
  }

  void append(SplitFile &file, std::vector<float> &pixels) const {
    if (isBytes_) {
      std::vector<unsigned char> bytes;
      for (float value : pixels)
        bytes.push_back(static_cast<unsigned char>(std::lround(value)));
      return file.append(bytes.data());
    }
    size_t plane = pixels.size() / mean_.size();
    for (size_t i = 0; i < pixels.size(); ++i)
      pixels[i] =
          static_cast<float>((pixels[i] / 255.0 - mean_[i / plane]) / deviation_[i / plane]);
    file.append(pixels.data());
  }

  const Arguments &arguments_;
  int64_t channels_, height_ = 0, width_ = 0;
  bool stretches_, isBytes_, measures_ = false;
  std::vector<double> mean_, deviation_;
  std::vector<Found> images_;
  std::vector<std::string> classes_;
  std::vector<int64_t> counts_;
  std::optional<Split> split_;
  int64_t others_ = 0, done_ = 0, turned_ = 0;
  std::string firstTurned_;
};

} // namespace

const CommandRow &imagesCommand() {
  static const CommandRow row = {
      "images",
      ".npy from folders of images",
      "FOLDER",
      "Writes FOLDER/x.npy [images, channels, height, width] and labels.npy, a class for each "
      "folder in\n"
      "FOLDER, in order of their names. Images are JPEG and PNG.",
      "images photos --size 64 --mean measured --validation-share 0.1 -o data",
      {
          {"output", "FOLDER", "", "where the arrays go"},
          {"size", "N|HxW", "", "resize all images; without it they must have one size"},
          {"fit", "KIND", "crop",
           "where proportions differ: take the middle of the image, or stretch all of it", false,
           "crop|stretch"},
          {"channels", "N", "3", "red, green and blue, or the luminance", false, "1|3"},
          {"type", "TYPE", "f32", "0 to 1, less the mean, over the deviation; or 0 to 255", false,
           "f32|u8"},
          {"mean", "X,...", "",
           "of each channel, or one of all (default 0); measured: mean and deviation of the images "
           "to\ntrain on"},
          {"deviation", "X,...", "", "likewise (default 1)"},
          {"validation-share", "X", "0",
           "random part of the images, to files of their own: x-validation.npy"},
          {"seed", "N", "0", "of that choice"},
      },
      [](const Arguments &arguments) { ImagesCommand(arguments).run(); },
  };
  return row;
}

} // namespace trainc::data
