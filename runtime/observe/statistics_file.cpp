// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/statistics_file.h"

#include "runtime/failure.h"
#include "runtime/files/data_types.h"
#include "runtime/files/json_number.h"
#include "runtime/files/json_text.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace trainc {
namespace {

void append(std::string &line, const char *member, double value) {
  char text[32];
  line.append(", \"").append(member).append("\": ").append(json_number(text, value));
}

void append(std::string &line, const char *member, int64_t value) {
  line.append(", \"").append(member).append("\": ").append(std::to_string(value));
}

// A row for each exponent that occurs: it, how many negative elements, how many positive ones.
void append_histogram(std::string &line, const tensor_statistics &found) {
  line += ", \"histogram\": [";
  const char *between = "";
  for (size_t place = 0; place < found.positive.size(); ++place)
    if (found.negative[place] + found.positive[place] > 0) {
      line.append(between).append("[");
      line.append(std::to_string(static_cast<int64_t>(place) + lowest_exponent)).append(", ");
      line.append(std::to_string(found.negative[place])).append(", ");
      line.append(std::to_string(found.positive[place])).append("]");
      between = ", ";
    }
  line += "]";
}

// As a kill leaves a file.
bool ends_within_line(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0)
    return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

} // namespace

const char *name_of(tensor_kind kind) {
  constexpr const char *names[] = {"input",     "value",  "gradient", "total_gradient",
                                   "parameter", "buffer", "update"};
  return names[static_cast<int>(kind)];
}

void append_head(std::string &text, const std::string &model, int rank, int ranks) {
  text += format_text("{\"format\": \"%s\", \"version\": %d, \"model\": %s, ", statistics_format,
                      statistics_version, json_text(model).c_str());
  text += format_text("\"rank\": %d, \"ranks\": %d}\n", rank, ranks);
}

void append_line(std::string &text, int64_t step, int64_t micro_batch, const watched_tensor &tensor,
                 const tensor_statistics &found) {
  text.append("{\"step\": ").append(std::to_string(step));
  if (micro_batch >= 0)
    append(text, "micro_batch", micro_batch);
  text.append(", \"tensor\": ").append(json_text(tensor.name));
  text.append(", \"kind\": \"").append(name_of(tensor.kind)).append("\", \"type\": \"");
  for (const char *letter = safetensors_name_of(tensor.type); *letter; ++letter)
    text += static_cast<char>(tolower(*letter));
  text += "\", \"shape\": [";
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis)
    text.append(axis ? ", " : "").append(std::to_string(tensor.shape[axis]));
  text += "]";
  const bool any = found.finite() > 0;
  append(text, "min", any ? found.least : NAN);
  append(text, "max", any ? found.largest : NAN);
  append(text, "mean", found.mean());
  append(text, "std", any ? found.deviation() : NAN);
  append(text, "abs_mean", found.mean_of_absolutes());
  append(text, "norm", found.norm());
  append(text, "zeros", found.zeros);
  append(text, "nan", found.nans);
  append(text, "inf", found.infinities);
  text += ", \"sketch\": [";
  for (size_t k = 0; k < found.sketch.size(); ++k) {
    char number[32];
    text.append(k ? ", " : "").append(json_number(number, found.sketch[k]));
  }
  text += "]";
  append_histogram(text, found);
  text += "}\n";
}

statistics_file::statistics_file(const std::string &path, const std::string &model, int rank,
                                 int ranks)
    : path_(path) {
  line_.reserve(1 << 14);
  if (file_.open(path, /*keeps=*/true) != 0)
    throw failure(exit_disk, path + ": cannot be written: " + strerror(errno));
  if (ends_within_line(path))
    line_ = "\n";
  append_head(line_, model, rank, ranks);
  file_.append(line_.data(), line_.size());
}

void statistics_file::write(int64_t step, int64_t micro_batch, const watched_tensor &tensor,
                            const tensor_statistics &found) {
  if (error() != 0)
    return;
  line_.clear();
  append_line(line_, step, micro_batch, tensor, found);
  file_.append(line_.data(), line_.size());
}

} // namespace trainc
