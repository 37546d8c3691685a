// SPDX-License-Identifier: Apache-2.0
//
// A data file as it is made: samples are appended, the header is completed at the end, and a
// manifest with checksums is written beside it. All files of a command get their names at once.
#pragma once

#include "runtime/data/data_manifest.h"
#include "runtime/data/permutation.h"
#include "runtime/files/npy.h"
#include "runtime/files/output_file.h"
#include "tools/data/arguments.h"

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace trainc::data {

enum class FileFormat { npy, raw, llmc };

/// The results of a command. None has the name of a file which it reads, of another result or of
/// what somebody else made.
class Outputs {
public:
  explicit Outputs(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}

  /// For a data file and its manifest; returns the path. Throws `failure` (exit_usage).
  std::string claim(std::string path);

  /// Of data without a validation part: throws `failure` (exit_usage) where an earlier command left
  /// one, which is of other data.
  void refuseOldValidation(const std::string &path) const;

  /// A data file and its manifest, both complete, and a line about them.
  void add(std::unique_ptr<output_file> file, std::unique_ptr<output_file> manifest,
           std::string line);

  /// Gives all that was added their names and prints the lines. Manifests go first: data of another
  /// command beside them are noticed, data of this one beside an older manifest might not be.
  /// Throws `failure` (exit_disk).
  void publish();

private:
  void claimName(const std::string &path);

  std::vector<std::string> inputs_;
  std::set<std::string> claimed_;
  std::vector<std::unique_ptr<output_file>> files_, manifests_;
  std::string lines_;
};

class DataFile {
public:
  /// Samples of `shape` each; one-dimensional where it is empty. Nothing has its name before
  /// `outputs`, which lives longer, publishes it. Throws `failure` (exit_disk; exit_usage where
  /// `outputs` does not give the name).
  DataFile(Outputs &outputs, std::string path, FileFormat format, file_type type,
           std::vector<int64_t> shape);

  void append(const void *values, int64_t samples);
  int64_t samples() const { return samples_; }

  /// Writes header and manifest, which has the `facts` besides, and adds the file to the outputs.
  void finish(const nlohmann::ordered_json &facts);

private:
  std::string header() const;
  void noteRange(const void *values, int64_t count);

  Outputs &outputs_;
  std::string path_;
  FileFormat format_;
  file_type type_;
  std::vector<int64_t> shape_;
  int64_t sampleElements_ = 1, samples_ = 0;
  nlohmann::ordered_json range() const;

  double least_ = INFINITY, most_ = -INFINITY;             // of finite numbers
  int64_t leastWhole_ = INT64_MAX, mostWhole_ = INT64_MIN; // of integers, which double may not hold
  int64_t notFinite_ = 0;
  std::unique_ptr<output_file> file_; // until it is finished
};

/// And those above it. Throws `failure` (exit_disk).
void makeFolder(const std::string &path);

/// Checks a file's bytes against the checksum of its manifest. Throws `failure` (exit_data).
void checkWhole(const std::string &path);

/// PATH with "-validation" before its ending.
std::string validationPath(const std::string &path);

/// Which of `count` samples are for validation: a random share, the same for every start, as
/// --validation-share and --seed say.
class Split {
public:
  Split(int64_t count, const Arguments &arguments);
  bool isValidation(int64_t sample) const {
    return static_cast<int64_t>(order_(static_cast<uint64_t>(sample))) < validation_;
  }
  int64_t validation() const { return validation_; }

private:
  int64_t validation_;
  permutation order_;
};

/// One array of samples in a file for training and, where a share is kept, one for validation.
class SplitFile {
public:
  SplitFile(Outputs &outputs, const std::string &path, file_type type,
            const std::vector<int64_t> &shape, const Split &split);
  void append(const void *values); // the next sample
  void finish(const nlohmann::ordered_json &facts);

private:
  const Split &split_;
  int64_t next_ = 0;
  DataFile training_;
  std::optional<DataFile> validation_;
};

/// How far long work is, on standard error: a line that changes on a terminal, a line every ten
/// seconds elsewhere.
class Progress {
public:
  Progress(std::string what, int64_t total, bool silent);
  ~Progress();
  void at(int64_t done);

private:
  std::string what_;
  int64_t total_;
  bool silent_, terminal_, shown_ = false;
  double last_;
};

} // namespace trainc::data
