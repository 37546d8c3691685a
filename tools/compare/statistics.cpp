// SPDX-License-Identifier: Apache-2.0
//
// Problem: two runs whose losses differ agree in most tensors up to some step, and rounding alone
// makes all differ a little, the later the more. Method: the sums with signs of a tensor (`sketch`)
// tell how far two tensors are apart. Tensors are looked at in the order in which the second run,
// the reference, made them. One is beyond the tolerance where its relative distance is above the
// rounding of f32 and far above that of everything before it: rounding grows slowly, a fault jumps.
// Weakness: two tensors that are noise altogether, such as the gradient of a bias in front of a
// softmax, are told by their size beside the other tensors of their kind.
#include "tools/compare/statistics.h"

#include "runtime/files/bounded_json.h"
#include "tools/safetensors.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

namespace trainc::tools {
namespace {

using nlohmann::json;

constexpr int kDeepestLine = 3;     // object, histogram, its rows
constexpr double kRounding = 2e-6;  // relative distance that f32 alone may make
constexpr double kJump = 20;        // above the largest distance before
constexpr double kNoise = 3e-7;     // of the largest root mean square of a kind: rounding
constexpr double kOfUpdates = 2e-3; // of norms: Adam makes as much of rounding as of gradients
constexpr int kPrinted = 12;        // rows of a step
constexpr int kBefore = 3;          // tensors in front of the first one

struct Record {
  int64_t step = 0, microBatch = -1, rank = 0;
  std::string kind, tensor;
  std::vector<int64_t> shape;
  double norm = 0, mean = 0, deviation = 0;
  int64_t notFinite = 0;
  std::array<double, 4> sketch = {};

  int64_t count() const {
    int64_t all = 1;
    for (int64_t size : shape)
      all *= size;
    return all;
  }
  double rootMeanSquare() const { return norm / std::sqrt(double(std::max<int64_t>(1, count()))); }
  using Key = std::tuple<int64_t, int64_t, int64_t, std::string, std::string>;
  Key key() const { return {step, rank, microBatch, kind, tensor}; }
};

double numberOf(const json &line, const char *member) {
  const json &value = line.at(member);
  return value.is_number() ? value.get<double>() : NAN;
}

Record recordOf(const json &line, int64_t rank) {
  Record record;
  record.rank = rank;
  record.step = line.at("step").get<int64_t>();
  record.microBatch = line.value("micro_batch", int64_t(-1));
  record.kind = line.at("kind").get<std::string>();
  record.tensor = line.at("tensor").get<std::string>();
  record.shape = line.at("shape").get<std::vector<int64_t>>();
  record.norm = numberOf(line, "norm");
  record.mean = numberOf(line, "mean");
  record.deviation = numberOf(line, "std");
  record.notFinite = line.at("nan").get<int64_t>() + line.at("inf").get<int64_t>();
  for (size_t k = 0; k < record.sketch.size(); ++k)
    record.sketch[k] = line.at("sketch").at(k).get<double>();
  return record;
}

/// In the order of the file. A step that was taken again, after a resume, is the later one.
struct Statistics {
  std::vector<Record> records;
  std::map<Record::Key, size_t> places;
  int64_t ranks = 1;

  void read(const std::string &path) {
    std::istringstream lines(readWholeFile(path));
    int64_t rank = 0, number = 0;
    try {
      for (std::string text; std::getline(lines, text);) {
        ++number;
        const json line = bounded_json(text, kDeepestLine);
        if (line.is_discarded()) { // half of one, as a kill leaves it
          std::fprintf(stderr, "%s:%" PRId64 ": warning: the line is damaged and left out\n",
                       path.c_str(), number);
          continue;
        }
        if (line.contains("format"))
          rank = line.at("rank").get<int64_t>(), ranks = line.at("ranks").get<int64_t>();
        else
          add(recordOf(line, rank));
      }
    } catch (const json::exception &) {
      throw InputError(path + ":" + std::to_string(number) +
                       ": is not a line of statistics of tensors");
    }
  }
  void add(Record record) {
    auto [known, isNew] = places.try_emplace(record.key(), records.size());
    if (isNew)
      records.push_back(std::move(record));
    else
      records[known->second] = std::move(record);
  }

  /// Beside a run of another number of ranks the first one that has a tensor counts.
  void forgetRanks() {
    std::vector<Record> all = std::exchange(records, {});
    places.clear();
    for (Record &record : all) {
      record.rank = 0;
      if (places.try_emplace(record.key(), records.size()).second)
        records.push_back(std::move(record));
    }
  }
};

Statistics readStatistics(const std::string &path) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const auto &entry : fs::directory_iterator(path, error))
      if (entry.path().extension() == ".jsonl")
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  Statistics all;
  for (const std::string &file : files)
    all.read(file);
  if (all.records.empty())
    throw InputError(path +
                     ": has no statistics of tensors\n  try: the folder that `train --watch` "
                     "wrote, or a file of trainc.statistics");
  return all;
}

/// A kernel may write its result for a reader that wants the axes in another order: then the shapes
/// are not those of one sequence of elements.
bool isTransposed(const Record &a, const Record &b) {
  auto products = [](const std::vector<int64_t> &shape) {
    std::set<int64_t> all;
    int64_t product = 1;
    for (int64_t size : shape)
      all.insert(product *= size);
    return all;
  };
  const std::set<int64_t> one = products(a.shape), other = products(b.shape);
  return !std::includes(one.begin(), one.end(), other.begin(), other.end()) &&
         !std::includes(other.begin(), other.end(), one.begin(), one.end());
}

/// Of the 2-norm of the difference: its estimate; its least of tensors with other orders of axes.
double distanceOf(const Record &a, const Record &b) {
  if (isTransposed(a, b))
    return std::abs(a.norm - b.norm);
  double squares = 0;
  for (size_t k = 0; k < a.sketch.size(); ++k)
    squares += (a.sketch[k] - b.sketch[k]) * (a.sketch[k] - b.sketch[k]);
  return std::sqrt(squares / double(a.sketch.size()));
}

const std::string kOfGradient = "gradient of ";

/// Whether the tensor is a product that something is added to, before it is what its module
/// returns.
bool lacksBias(const std::string &tensor, const std::string &module,
               const std::set<std::string> &parameters) {
  static const std::regex product(".*\\.(matmul|convolved)(_[0-9]+)?");
  return std::regex_match(tensor, product) && parameters.count(module + ".bias") > 0;
}

/// What one set calls `linear` may be several tensors of the other, `linear.matmul` and
/// `linear.add`: a module without modules in it, and the operations that it was exported as. The
/// last of these, with as many elements, is the module's output. Adds it under the module's name.
/// Where a kernel has made the output without storing it, a product before a bias may be the last
/// that is stored: its gradient alone is that of the output.
void nameModules(Statistics &own, const Statistics &other) {
  std::map<std::string, const Record *> modules; // by name, the first record of each
  std::set<std::string> parameters;
  for (const Record &record : other.records)
    if (record.kind == "value")
      modules.try_emplace(record.tensor, &record);
    else if (record.kind == "parameter")
      parameters.insert(record.tensor);
  auto holdsOthers = [&](const std::string &name) {
    auto next = modules.upper_bound(name + ".");
    return next != modules.end() && next->first.starts_with(name + ".");
  };
  std::map<std::string, std::string> last; // of the module's operations
  for (const Record &record : own.records) {
    const size_t dot = record.tensor.rfind('.');
    if (record.kind != "value" || dot == std::string::npos || record.tensor.ends_with(".partial"))
      continue;
    const std::string name = record.tensor.substr(0, dot);
    auto module = modules.find(name);
    if (module != modules.end() && module->second->count() == record.count() && !holdsOthers(name))
      last[name] = record.tensor;
  }
  std::map<std::string, std::string> modulesOf; // by the tensor
  for (const auto &[name, tensor] : last) {
    if (!lacksBias(tensor, name, parameters))
      modulesOf[tensor] = name;
    modulesOf[kOfGradient + tensor] = kOfGradient + name;
  }
  for (size_t i = 0; i < own.records.size(); ++i) {
    Record &record = own.records[i];
    auto known = modulesOf.find(record.tensor);
    if (known == modulesOf.end())
      continue;
    Record::Key key = record.key();
    std::get<4>(key) = known->second;
    if (own.places.try_emplace(key, i).second)
      record.tensor = known->second;
  }
}

struct Difference {
  const Record *got, *expected;
  double relative;
  std::string why; // where it is not a matter of size
  size_t place;    // in the order of the second run
};

class Comparison {
public:
  Comparison(const Statistics &got, const Statistics &expected, std::optional<double> tolerance)
      : got(got), expected(expected), tolerance(tolerance) {}

  int run() {
    findSizes();
    for (size_t place = 0; place < expected.records.size(); ++place) {
      const Record &other = expected.records[place];
      if (auto own = got.places.find(other.key()); own != got.places.end())
        compare(got.records[own->second], other, place);
    }
    if (compared == 0)
      throw InputError("the two have no tensor of one name, kind and step");
    return report();
  }

private:
  /// The largest root mean square of each step and kind.
  void findSizes() {
    for (const Record &record : expected.records)
      if (std::isfinite(record.norm)) {
        double &size = sizes[{record.step, record.kind}];
        size = std::max(size, record.rootMeanSquare());
      }
  }

  void compare(const Record &own, const Record &other, size_t place) {
    ++compared;
    std::string why;
    if (own.count() != other.count())
      why = "other sizes";
    else if (own.notFinite != other.notFinite)
      why = "other elements are not finite";
    const double distance = distanceOf(own, other);
    const double norm = std::max(own.norm, other.norm);
    const double noise = kNoise * sizes[{own.step, own.kind}] * std::sqrt(double(own.count()));
    const double relative = norm > 0 ? distance / norm : 0;
    const bool isNoise = distance <= noise;
    const bool isOfUpdate = own.kind == "update" || own.kind == "parameter";
    if (own.kind == "total_gradient" && isNoise && relative > kRounding)
      roundingOnly.insert(own.tensor.substr(kOfGradient.size()));
    const double known = std::max(largest, distanceOfParameters(own));
    const double most = tolerance.value_or(std::max(kRounding, kJump * known));
    const bool isSameSize =
        isOfUpdate && !tolerance && std::abs(own.norm - other.norm) <= kOfUpdates * norm;
    if (own.kind == "parameter")
      ofParameters[own.tensor] = relative;
    if (why.empty() && !tolerance && followsRounding(own))
      return;
    if (why.empty() && (isNoise || relative <= most || isSameSize)) {
      if (!isOfUpdate)
        largest = std::max(largest, isNoise ? std::min(relative, kNoise) : relative);
      return;
    }
    differences.push_back({&own, &other, relative, why, place});
  }

  /// Whether the gradient of the parameter is rounding altogether, which Adam makes an update of
  /// any size of, such as that of a bias before a norm; or the running statistics of what it is
  /// added to.
  bool followsRounding(const Record &of) const {
    const std::string update = "update of ";
    if (of.kind == "buffer")
      return !roundingOnly.empty();
    return (of.kind == "parameter" && roundingOnly.count(of.tensor) > 0) ||
           (of.kind == "update" && roundingOnly.count(of.tensor.substr(update.size())) > 0);
  }

  /// Of those of the value's own module, after the step before.
  double distanceOfParameters(const Record &value) const {
    double most = 0;
    const std::string prefix = value.tensor + ".";
    for (auto next = ofParameters.lower_bound(prefix);
         next != ofParameters.end() && next->first.starts_with(prefix); ++next)
      most = std::max(most, next->second);
    return most;
  }

  static std::string titleOf(const Record &record) {
    std::string text = record.tensor + (record.kind == "total_gradient" ? ", of the step" : "");
    if (record.microBatch > 0)
      text += " of micro-batch " + std::to_string(record.microBatch);
    return text;
  }

  int report() const {
    std::printf("%zu tensors of both, %zu beyond the tolerance", compared, differences.size());
    if (differences.empty()) {
      std::printf("; the largest relative distance is %.2g\n", largest);
      return 0;
    }
    const Difference &first = differences.front();
    std::printf("\n\nthe runs part at step %" PRId64 ": %s\n", first.got->step,
                titleOf(*first.got).c_str());
    reportBefore(first.place);
    int64_t step = -1;
    int rows = 0;
    for (const Difference &one : differences) {
      if (one.got->step != step) {
        step = one.got->step;
        rows = 0;
        std::printf("\nstep %" PRId64 "\n  %-44s %10s %14s %14s %14s %14s\n", step, "tensor",
                    "distance", "norm", "norm there", "mean", "mean there");
      }
      if (++rows == kPrinted + 1)
        std::printf("  ... and more of this step\n");
      if (rows > kPrinted)
        continue;
      std::printf("%c %-44s %10.3g %14.8g %14.8g %14.8g %14.8g%s%s\n", &one == &first ? '*' : ' ',
                  titleOf(*one.got).c_str(), one.relative, one.got->norm, one.expected->norm,
                  one.got->mean, one.expected->mean, one.why.empty() ? "" : "  ", one.why.c_str());
    }
    return 1;
  }

  /// What was made just before and agrees: often what the first one is computed from. What was made
  /// before it and cannot be compared may be where the fault is.
  void reportBefore(size_t place) const {
    std::string names;
    int64_t unknown = 0;
    for (size_t i = 0; i < place; ++i)
      if (const Record &other = expected.records[i];
          other.step == expected.records[place].step && other.kind == "value" &&
          !got.places.count(other.key()) && ++unknown <= int64_t(kBefore))
        names += (names.empty() ? "" : ", ") + other.tensor;
    if (unknown > 0)
      std::printf("  not compared before it, since the first run does not store them: %s%s\n"
                  "  try: trainc --keep '.*', or a pattern of these\n",
                  names.c_str(),
                  unknown > int64_t(kBefore)
                      ? (" and " + std::to_string(unknown - int64_t(kBefore)) + " more").c_str()
                      : "");
    std::vector<const Record *> before;
    for (size_t i = place; i-- > 0 && before.size() < kBefore;)
      if (got.places.count(expected.records[i].key()) &&
          expected.records[i].step == expected.records[place].step)
        before.push_back(&expected.records[i]);
    for (const Record *record : before) {
      const Record &own = got.records[got.places.at(record->key())];
      std::printf("  before it: %s, relative distance %.2g\n", titleOf(*record).c_str(),
                  record->norm > 0 ? distanceOf(*record, own) / record->norm : 0);
    }
  }

  const Statistics &got, &expected;
  std::optional<double> tolerance;
  std::map<std::pair<int64_t, std::string>, double> sizes;
  double largest = 0; // relative distance of what agrees
  size_t compared = 0;
  std::map<std::string, double> ofParameters; // relative distances, by name
  std::set<std::string> roundingOnly;         // parameters with such gradients
  std::vector<Difference> differences;
};

} // namespace

int compareStatistics(const std::string &got, const std::string &expected,
                      std::optional<double> tolerance) {
  Statistics own = readStatistics(got), other = readStatistics(expected);
  if (own.ranks != other.ranks) {
    own.forgetRanks();
    other.forgetRanks();
  }
  nameModules(own, other);
  nameModules(other, own);
  return Comparison(own, other, tolerance).run();
}

} // namespace trainc::tools
