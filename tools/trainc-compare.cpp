// SPDX-License-Identifier: Apache-2.0
//
// trainc-compare: holds a run against another one. Losses of a training log
// against recorded ones, gradients against recorded ones in norm, two files of
// tensors bit by bit. Prints the worst and ends with 0 where all is within the
// tolerance, 1 where it is not, 2 where a file or the command line is at fault.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "runtime/files/bounded_json.h"
#include "tools/compare/statistics.h"
#include "tools/run_tool.h"
#include "tools/safetensors.h"

using nlohmann::json;
using trainc::tools::InputError;
using trainc::tools::readWholeFile;
using trainc::tools::SafetensorsFile;
using trainc::tools::StoredTensor;
using trainc::tools::valuesOf;

namespace {

constexpr double kLossTolerance = 5e-6;     // relative, the project's promise against PyTorch f64
constexpr double kGradientTolerance = 1e-5; // in norm, relative
constexpr double kNoiseFloor = 1e-4; // of the global norm: below it a gradient may be pure rounding
constexpr int kRowsPrinted = 8;
constexpr int kDeepestLine = 1;    // object of numbers
constexpr int kDeepestFixture = 8; // of tests/models/expected

constexpr const char *kPage = R"(usage:
  trainc-compare losses RUN.jsonl EXPECTED [--run NAME] [--tolerance T] [--steps N]
  trainc-compare gradients GOT.safetensors EXPECTED [--tolerance T]
  trainc-compare bits A.safetensors B.safetensors
  trainc-compare statistics A B [--tolerance T]

losses     each line's loss against those of EXPECTED, relative (5e-6), and its gradient norm
           against theirs (twice that); EXPECTED is another run's .jsonl, or the JSON of a
           fixture, of which the f64 losses are meant
gradients  each tensor's difference in norm, relative to the larger of its own norm and
           1e-4 of the global one (1e-5); EXPECTED is a safetensors file, or the JSON of
           a fixture, which says what the tensors are called and which are transposed
bits       same names, types, shapes and bytes; a folder stands for the safetensors in it
statistics what `train --watch` or trainc.statistics wrote, a file or a folder each: tensors of
           one name, in the order in which B made them; the first that differs by more than
           rounding does is marked, and what was made before it is named
exit code  0 within the tolerance, 1 not, 2 unusable input
)";

struct Command : trainc::tools::ToolOptions {
  std::string run = "adamw";
  std::optional<double> tolerance;
  uint64_t steps = 0; // 0: all

  std::string got() const { return word(1); }
  std::string expected() const { return word(2); }
};

json parseJson(const std::string &path, const std::string &text, int deepest) {
  json value = trainc::bounded_json(text, deepest);
  if (!value.is_object())
    throw InputError(path + ": is not valid JSON, or no object");
  return value;
}

// One value of every line that has a step; a value that is not a number reads as NaN.
std::vector<double> columnOfLog(const std::string &path, const char *key) {
  std::istringstream lines(readWholeFile(path));
  std::vector<double> values;
  for (std::string line; std::getline(lines, line);) {
    json record = parseJson(path, line, kDeepestLine);
    if (record.contains("step") && record.contains(key))
      values.push_back(record[key].is_number() ? record[key].get<double>() : NAN);
  }
  return values;
}

// Compares one column of a log with a recorded one, prints it and returns whether it agrees.
bool compareColumn(const Command &command, const json &run, const char *key, const char *recorded,
                   double tolerance) {
  std::vector<double> got = columnOfLog(command.got(), key);
  std::vector<double> expected;
  for (const json &value : run.at(recorded))
    expected.push_back(value.is_null() ? NAN : value.get<double>());
  if (command.steps && command.steps < expected.size())
    expected.resize(command.steps);
  if (command.steps && command.steps < got.size())
    got.resize(command.steps);
  if (got.size() != expected.size())
    throw InputError(command.got() + ": has " + std::to_string(got.size()) + " steps with a " +
                     key + ", expected " + std::to_string(expected.size()));

  double worst = 0;
  std::printf("%6s %18s %18s %10s\n", "step", key, "expected", "relative");
  for (size_t i = 0; i < got.size(); ++i) {
    double relative = std::abs(got[i] - expected[i]) / std::abs(expected[i]);
    bool bad = !(relative <= tolerance);
    if (bad || i == 0 || i + 1 == got.size())
      std::printf("%6zu %18.12g %18.12g %10.1e%s\n", i + 1, got[i], expected[i], relative,
                  bad ? "  too far" : "");
    worst = std::isnan(relative) ? INFINITY : std::max(worst, relative);
  }
  std::printf("worst %.1e, tolerance %.1e: %s\n", worst, tolerance,
              worst <= tolerance ? "ok" : "FAILED");
  return worst <= tolerance;
}

json expectedRun(const Command &command) {
  if (command.expected().ends_with(".jsonl"))
    return {{"losses", columnOfLog(command.expected(), "loss")},
            {"gradient_norms", columnOfLog(command.expected(), "gradient_norm")}};
  json recorded = parseJson(command.expected(), readWholeFile(command.expected()), kDeepestFixture);
  json::json_pointer where = json::json_pointer("/runs") / command.run / "f64";
  if (!recorded.contains(where))
    throw InputError(command.expected() + ": has no recorded run '" + command.run + "'");
  return recorded[where];
}

int compareLosses(const Command &command) {
  json run = expectedRun(command);
  double tolerance = command.tolerance.value_or(kLossTolerance);
  bool ok = compareColumn(command, run, "loss", "losses", tolerance);
  // A norm is a square root of squares: it may be as far off as a gradient.
  ok &= compareColumn(command, run, "gradient_norm", "gradient_norms",
                      tolerance * (kGradientTolerance / kLossTolerance));
  return ok ? 0 : 1;
}

// A gradient as it should be, under the name that the compared file gives it.
struct ExpectedTensor {
  std::string name;
  std::vector<double> values;
};

std::vector<double> transposed(const std::vector<double> &values, int64_t rows, int64_t columns) {
  std::vector<double> result(values.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      result[column * rows + row] = values[row * columns + column];
  return result;
}

std::vector<ExpectedTensor> expectedOfFixture(const std::string &path) {
  json fixture = parseJson(path, readWholeFile(path), kDeepestFixture);
  std::string folder =
      path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  SafetensorsFile file(folder + fixture.at("gradients").get<std::string>());
  std::vector<ExpectedTensor> expected;
  for (const json &parameter : fixture.at("parameters")) {
    std::string name = parameter.at("torch");
    auto found = file.tensors().find(name);
    if (found == file.tensors().end())
      throw InputError(path + ": no recorded gradient of '" + name + "'");
    const StoredTensor &tensor = found->second;
    std::vector<double> values = valuesOf(name, tensor);
    bool turns = parameter.value("transposed", false);
    auto rows = parameter.contains("rows") ? parameter["rows"].get<size_t>() : 0;
    if ((turns || rows > 0) && tensor.shape.size() != 2)
      throw InputError(path + ": the gradient of '" + name + "' is not a matrix");
    if (turns)
      values = transposed(values, tensor.shape[0], tensor.shape[1]);
    if (rows > static_cast<size_t>(tensor.shape.empty() ? 0 : tensor.shape[0]))
      throw InputError(path + ": the gradient of '" + name + "' has fewer than " +
                       std::to_string(rows) + " rows");
    if (rows > 0)
      values.resize(rows * static_cast<size_t>(tensor.shape[1]));
    expected.push_back({parameter.at("onnx"), std::move(values)});
  }
  return expected;
}

std::vector<ExpectedTensor> expectedGradients(const std::string &path) {
  if (path.size() > 5 && path.ends_with(".json"))
    return expectedOfFixture(path);
  std::vector<ExpectedTensor> expected;
  SafetensorsFile file(path);
  for (const auto &[name, tensor] : file.tensors())
    expected.push_back({name, valuesOf(name, tensor)});
  return expected;
}

double norm(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return std::sqrt(sum);
}

struct GradientRow {
  std::string name;
  double own, difference, relative;
};

// Names that only one side has; true if there are none.
bool sameNames(const SafetensorsFile &got, const std::vector<ExpectedTensor> &expected) {
  bool same = true;
  for (const auto &[name, tensor] : got.tensors()) {
    bool known = std::any_of(expected.begin(), expected.end(),
                             [&](const ExpectedTensor &e) { return e.name == name; });
    if (!known)
      std::printf("unexpected tensor '%s'\n", name.c_str());
    same &= known;
  }
  for (const ExpectedTensor &tensor : expected)
    if (!got.tensors().count(tensor.name)) {
      std::printf("missing tensor '%s'\n", tensor.name.c_str());
      same = false;
    }
  return same;
}

int compareGradients(const Command &command) {
  SafetensorsFile got(command.got());
  std::vector<ExpectedTensor> expected = expectedGradients(command.expected());
  bool ok = sameNames(got, expected);
  double global = 0;
  for (const ExpectedTensor &tensor : expected)
    global = std::hypot(global, norm(tensor.values));

  std::vector<GradientRow> rows;
  for (const ExpectedTensor &tensor : expected) {
    auto found = got.tensors().find(tensor.name);
    if (found == got.tensors().end())
      continue;
    std::vector<double> difference = valuesOf(tensor.name, found->second);
    if (difference.size() != tensor.values.size())
      throw InputError("tensor '" + tensor.name + "' has " + std::to_string(difference.size()) +
                       " elements, expected " + std::to_string(tensor.values.size()));
    for (size_t i = 0; i < difference.size(); ++i)
      difference[i] -= tensor.values[i];
    double own = norm(tensor.values), apart = norm(difference);
    double relative = apart / std::max(own, kNoiseFloor * global);
    rows.push_back({tensor.name, own, apart, std::isnan(relative) ? INFINITY : relative});
  }
  std::sort(rows.begin(), rows.end(),
            [](const GradientRow &a, const GradientRow &b) { return a.relative > b.relative; });

  double tolerance = command.tolerance.value_or(kGradientTolerance);
  std::printf("%10s %12s %12s  gradient of\n", "relative", "difference", "norm");
  for (size_t i = 0; i < rows.size() && i < kRowsPrinted; ++i)
    std::printf("%10.1e %12.4e %12.4e  %s%s\n", rows[i].relative, rows[i].difference, rows[i].own,
                rows[i].name.c_str(), rows[i].relative <= tolerance ? "" : "  too far");
  double worst = rows.empty() ? INFINITY : rows.front().relative;
  ok &= worst <= tolerance;
  std::printf("%zu tensors, global norm %.6g, worst %.1e, tolerance %.1e: %s\n", rows.size(),
              global, worst, tolerance, ok ? "ok" : "FAILED");
  return ok ? 0 : 1;
}

// How two tensors differ, or an empty text.
std::string differenceOf(const StoredTensor &a, const StoredTensor &b) {
  if (a.dtype != b.dtype || a.shape != b.shape)
    return "type or shape differ";
  if (std::memcmp(a.data, b.data, a.bytes) == 0)
    return "";
  size_t elementBytes = a.dtype.size() > 1 && a.dtype.find("64") != std::string::npos ? 8 : 4;
  size_t count = a.bytes / elementBytes, differing = 0, first = count;
  for (size_t i = 0; i < count; ++i)
    if (std::memcmp(a.data + i * elementBytes, b.data + i * elementBytes, elementBytes)) {
      first = std::min(first, i);
      ++differing;
    }
  return std::to_string(differing) + " of " + std::to_string(count) +
         " elements differ, the first at " + std::to_string(first);
}

int compareBits(const Command &command) {
  SafetensorsFile a(command.got()), b(command.expected());
  int differing = 0;
  auto report = [&](const std::string &name, const std::string &text) {
    if (++differing <= kRowsPrinted)
      std::printf("'%s': %s\n", name.c_str(), text.c_str());
  };
  for (const auto &[name, tensor] : a.tensors()) {
    auto other = b.tensors().find(name);
    if (other == b.tensors().end())
      report(name, "only in " + command.got());
    else if (std::string text = differenceOf(tensor, other->second); !text.empty())
      report(name, text);
  }
  for (const auto &[name, tensor] : b.tensors())
    if (!a.tensors().count(name))
      report(name, "only in " + command.expected());
  std::printf("%zu tensors, %d differ: %s\n", a.tensors().size(), differing,
              differing ? "FAILED" : "ok");
  return differing ? 1 : 0;
}

} // namespace

static int compare(const Command &command) {
  const std::string what = command.words.size() == 3 ? command.word(0) : "";
  try {
    if (what == "losses")
      return compareLosses(command);
    if (what == "gradients")
      return compareGradients(command);
    if (what == "statistics")
      return trainc::tools::compareStatistics(command.got(), command.expected(), command.tolerance);
    if (what == "bits")
      return compareBits(command);
  } catch (const InputError &error) {
    throw trainc::failure(trainc::exit_usage, std::string("trainc-compare: ") + error.what());
  } catch (const json::exception &error) {
    throw trainc::failure(trainc::exit_usage,
                          "trainc-compare: " + command.expected() +
                              ": does not say all that a fixture does: " + error.what());
  } catch (const std::exception &error) {
    throw trainc::failure(trainc::exit_usage, "trainc-compare: " + command.got() + " and " +
                                                  command.expected() +
                                                  " cannot be compared: " + error.what());
  }
  throw trainc::failure(trainc::exit_usage, kPage);
}

int main(int argc, char **argv) {
  using trainc::tools::toolOption;
  return trainc::tools::runTool(
      argc, argv,
      {"trainc-compare",
       kPage,
       {toolOption("run", &Command::run, "NAME", "which recorded run: adamw, sgd or nesterov"),
        toolOption("tolerance", &Command::tolerance, "T", "of differences"),
        toolOption("steps", &Command::steps, "N", "compare the first N steps alone")},
       nullptr,
       3},
      compare);
}
