// SPDX-License-Identifier: Apache-2.0
//
// Writing of data files and their manifests.
#include "tools/data/data_file.h"

#include "runtime/data/llmc.h"
#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/process/clock.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace trainc::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPieceBytes = 4 << 20; // read at once
constexpr int64_t kOwnFactsBytes = 4096; // of a manifest, besides those of a command, at most
constexpr double kSecondsBetweenBars = 0.2, kSecondsBetweenLines = 10;

std::string numberText(const nlohmann::ordered_json &number) {
  if (number.is_number_integer())
    return number.dump();
  const double value = number;
  return value == std::floor(value) && std::abs(value) < 1e15
             ? format_text("%" PRId64, static_cast<int64_t>(value))
             : format_text("%.6g", value);
}

std::string textOf(const nlohmann::ordered_json &object) {
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

uint32_t checksumOf(const input_file &file) {
  uint32_t sum = 0;
  std::vector<char> piece(kPieceBytes);
  for (int64_t begin = 0; begin < file.size(); begin += kPieceBytes) {
    int64_t bytes = std::min(kPieceBytes, file.size() - begin);
    file.read(begin, piece.data(), bytes);
    sum = crc32c(sum, piece.data(), static_cast<size_t>(bytes));
  }
  return sum;
}

} // namespace

std::string Outputs::claim(std::string path) {
  claimName(path);
  std::string manifest = manifest_of(path);
  claimName(manifest);
  if (std::error_code ignored; fs::exists(manifest, ignored) && !is_data_manifest(manifest))
    throw failure(exit_usage, manifest + ": is not a manifest of trainc-data, and that of " + path +
                                  " would take its place\n  try: -o with another file");
  return path;
}

void Outputs::refuseOldValidation(const std::string &path) const {
  const std::string old = validationPath(path);
  const std::string manifest = manifest_of(old);
  std::error_code ignored;
  if (!fs::exists(old, ignored) || !fs::exists(manifest, ignored) || !is_data_manifest(manifest))
    return; // nobody takes it for a part of what trainc-data made
  throw failure(exit_usage, old + ": is the validation part of other data, and would stay beside " +
                                path +
                                "\n  try: --validation-share again, -o elsewhere, or to "
                                "remove it and its manifest");
}

void Outputs::claimName(const std::string &path) {
  check_output_path(path, inputs_);
  std::error_code ignored;
  fs::path whole = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  if (!claimed_.insert(whole).second)
    throw failure(exit_usage, path + ": two results of this command have this name");
}

void Outputs::add(std::unique_ptr<output_file> file, std::unique_ptr<output_file> manifest,
                  std::string line) {
  files_.push_back(std::move(file));
  manifests_.push_back(std::move(manifest));
  lines_ += line;
}

void Outputs::publish() {
  std::vector<output_file *> all;
  for (const auto *part : {&manifests_, &files_})
    for (const auto &file : *part)
      all.push_back(file.get());
  publish_together(all);
  fputs(lines_.c_str(), stdout);
}

DataFile::DataFile(Outputs &outputs, std::string path, FileFormat format, file_type type,
                   std::vector<int64_t> shape)
    : outputs_(outputs), path_(outputs.claim(std::move(path))), format_(format), type_(type),
      shape_(std::move(shape)), file_(std::make_unique<output_file>(path_)) {
  for (int64_t extent : shape_)
    sampleElements_ *= extent;
  shape_.insert(shape_.begin(), 0);
  file_->write(std::string(header().size(), '\0'));
}

std::string DataFile::header() const {
  if (format_ == FileFormat::npy)
    return npy_header_of(type_, shape_);
  if (format_ == FileFormat::raw)
    return "";
  std::string text(llmc_header_bytes, '\0');
  for (const llmc_format &format : llmc_formats)
    if (format.type == type_) {
      const llmc_header head = {format.magic, format.version, static_cast<int32_t>(samples_)};
      memcpy(text.data(), &head, sizeof head);
    }
  return text;
}

void DataFile::noteRange(const void *values, int64_t count) {
  auto note = [&](auto *elements) {
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(*elements)>>) {
        leastWhole_ = std::min(leastWhole_, static_cast<int64_t>(elements[i]));
        mostWhole_ = std::max(mostWhole_, static_cast<int64_t>(elements[i]));
      } else if (std::isfinite(elements[i])) {
        least_ = std::min(least_, static_cast<double>(elements[i]));
        most_ = std::max(most_, static_cast<double>(elements[i]));
      } else {
        ++notFinite_;
      }
    }
  };
  switch (type_) {
  case file_type::f32:
    return note(static_cast<const float *>(values));
  case file_type::f64:
    return note(static_cast<const double *>(values));
  case file_type::i8:
    return note(static_cast<const int8_t *>(values));
  case file_type::i16:
    return note(static_cast<const int16_t *>(values));
  case file_type::i32:
    return note(static_cast<const int32_t *>(values));
  case file_type::i64:
    return note(static_cast<const int64_t *>(values));
  case file_type::u16:
    return note(static_cast<const uint16_t *>(values));
  case file_type::u32:
    return note(static_cast<const uint32_t *>(values));
  default: // u8, boolean
    return note(static_cast<const uint8_t *>(values));
  }
}

// The least and the largest value.
nlohmann::ordered_json DataFile::range() const {
  if (mostWhole_ >= leastWhole_)
    return {leastWhole_, mostWhole_};
  if (most_ >= least_)
    return {least_, most_};
  return {0, 0}; // there is none
}

void DataFile::append(const void *values, int64_t samples) {
  int64_t count = samples * sampleElements_;
  noteRange(values, count);
  file_->write(values, count * bytes_of(type_));
  samples_ += samples;
}

void DataFile::finish(const nlohmann::ordered_json &facts) {
  shape_[0] = samples_;
  if (format_ == FileFormat::llmc && samples_ > INT32_MAX)
    throw failure(exit_usage, format_text("%s: %" PRId64 " tokens are more than llm.c's header can "
                                          "say\n  try: --format raw, or several files",
                                          path_.c_str(), samples_));
  if (auto bytes = static_cast<int64_t>(textOf(facts).size());
      bytes > largest_data_manifest - kOwnFactsBytes)
    throw failure(exit_data,
                  format_text("%s: its manifest would have %" PRId64 " bytes and more, which no "
                              "trainer reads\n  try: shorter names of classes, or numbers",
                              path_.c_str(), bytes));
  std::string head = header();
  file_->write_at(0, head.data(), static_cast<int64_t>(head.size()));

  input_file written(file_->unfinished_path(), exit_disk);
  nlohmann::ordered_json object = {
      {"format", data_manifest_format},
      {"type", name_of(type_)},
      {"shape", shape_},
      {"bytes", written.size()},
      {"checksum", format_text("%08x", checksumOf(written))},
      {"digest", format_text("%08x", sampled_digest(written))},
      {"range", range()},
  };
  object.update(facts);
  auto manifest = std::make_unique<output_file>(manifest_of(path_));
  manifest->write(textOf(object));
  std::string values =
      samples_ ? ", values " + numberText(range()[0]) + " to " + numberText(range()[1]) : "";
  if (notFinite_ > 0)
    values += format_text(", %" PRId64 " are NaN or infinite", notFinite_);
  outputs_.add(std::move(file_), std::move(manifest),
               format_text("%-32s %s %s, %" PRId64 " bytes%s\n", path_.c_str(), name_of(type_),
                           shape_text(shape_).c_str(), written.size(), values.c_str()));
}

void makeFolder(const std::string &path) {
  std::vector<std::string> made;
  if (real_file_operations().make_directories(path, made) != 0)
    throw failure(exit_disk, path + ": cannot be made: " + strerror(errno));
}

void checkWhole(const std::string &path) {
  input_file file(path, exit_data);
  std::optional<data_manifest> manifest = read_data_manifest(path);
  if (!manifest)
    throw failure(exit_data, path + ": has no manifest of trainc-data beside it");
  if (manifest->bytes != file.size())
    throw failure(exit_data, format_text("%s: has %" PRId64 " bytes, its manifest says %" PRId64,
                                         path.c_str(), file.size(), manifest->bytes));
  if (manifest->checksum != checksumOf(file))
    throw failure(exit_data, path + ": its checksum is not that of the manifest");
}

std::string validationPath(const std::string &path) {
  size_t slash = path.rfind('/'), dot = path.rfind('.');
  bool hasEnding = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  size_t end = hasEnding && dot > 0 ? dot : path.size();
  return path.substr(0, end) + "-validation" + path.substr(end);
}

Split::Split(int64_t count, const Arguments &arguments)
    : order_(static_cast<uint64_t>(count),
             static_cast<uint64_t>(arguments.integer("seed", 0, INT32_MAX)), 0) {
  const double share = arguments.real("validation-share", 0, 0.999);
  validation_ = std::llround(static_cast<double>(count) * share);
  if (share > 0 && (validation_ == 0 || validation_ == count))
    throw failure(exit_usage,
                  format_text("option --validation-share: of %" PRId64 " samples it takes %" PRId64,
                              count, validation_));
}

SplitFile::SplitFile(Outputs &outputs, const std::string &path, file_type type,
                     const std::vector<int64_t> &shape, const Split &split)
    : split_(split), training_(outputs, path, FileFormat::npy, type, shape) {
  if (split.validation() > 0)
    validation_.emplace(outputs, validationPath(path), FileFormat::npy, type, shape);
  else
    outputs.refuseOldValidation(path);
}

void SplitFile::append(const void *values) {
  bool held = validation_ && split_.isValidation(next_);
  (held ? *validation_ : training_).append(values, 1);
  ++next_;
}

void SplitFile::finish(const nlohmann::ordered_json &facts) {
  training_.finish(facts);
  if (validation_)
    validation_->finish(facts);
}

Progress::Progress(std::string what, int64_t total, bool silent)
    : what_(std::move(what)), total_(total), silent_(silent), terminal_(isatty(2)),
      last_(seconds_now()) {}

Progress::~Progress() {
  if (shown_ && terminal_)
    fprintf(stderr, "\r\033[K");
}

void Progress::at(int64_t done) {
  double now = silent_ ? last_ : seconds_now();
  if (now - last_ < (terminal_ ? kSecondsBetweenBars : kSecondsBetweenLines))
    return;
  last_ = now;
  shown_ = true;
  double share =
      100.0 * static_cast<double>(done) / static_cast<double>(std::max<int64_t>(total_, 1));
  fprintf(stderr, terminal_ ? "\r\033[K%s: %.0f %%" : "%s: %.0f %%\n", what_.c_str(), share);
}

} // namespace trainc::data
