// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/statistics_file.h"

#include "runtime/failure.h"
#include "runtime/files/data_types.h"
#include "runtime/files/json_number.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace trainc {
namespace {

std::string quoted(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

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

} // namespace

const char *name_of(tensor_kind kind) {
  constexpr const char *names[] = {"input",     "value",  "gradient", "total_gradient",
                                   "parameter", "buffer", "update"};
  return names[static_cast<int>(kind)];
}

statistics_file::statistics_file(const std::string &path, const std::string &model, int rank,
                                 int ranks)
    : path_(path) {
  line_.reserve(1 << 14);
  if (file_.open(path, /*keeps=*/true) != 0)
    throw failure(exit_disk, path + ": cannot be written: " + strerror(errno));
  line_ = "{\"format\": " + quoted(statistics_format) +
          ", \"version\": " + std::to_string(statistics_version) + ", \"model\": " + quoted(model) +
          ", \"rank\": " + std::to_string(rank) + ", \"ranks\": " + std::to_string(ranks) + "}\n";
  file_.append(line_.data(), line_.size());
}

void statistics_file::write(int64_t step, int64_t micro_batch, const watched_tensor &tensor,
                            const tensor_statistics &found) {
  if (error() != 0)
    return;
  line_ = "{\"step\": " + std::to_string(step);
  if (micro_batch >= 0)
    append(line_, "micro_batch", micro_batch);
  line_.append(", \"tensor\": ").append(quoted(tensor.name));
  line_.append(", \"kind\": \"").append(name_of(tensor.kind)).append("\", \"type\": \"");
  for (const char *letter = safetensors_name_of(tensor.type); *letter; ++letter)
    line_ += static_cast<char>(tolower(*letter));
  line_ += "\", \"shape\": [";
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis)
    line_.append(axis ? ", " : "").append(std::to_string(tensor.shape[axis]));
  line_ += "]";
  const bool any = found.finite() > 0;
  append(line_, "min", any ? found.least : NAN);
  append(line_, "max", any ? found.largest : NAN);
  append(line_, "mean", found.mean());
  append(line_, "std", any ? found.deviation() : NAN);
  append(line_, "abs_mean", found.mean_of_absolutes());
  append(line_, "norm", found.norm());
  append(line_, "zeros", found.zeros);
  append(line_, "nan", found.nans);
  append(line_, "inf", found.infinities);
  line_ += ", \"sketch\": [";
  for (size_t k = 0; k < found.sketch.size(); ++k) {
    char text[32];
    line_.append(k ? ", " : "").append(json_number(text, found.sketch[k]));
  }
  line_ += "]";
  append_histogram(line_, found);
  line_ += "}\n";
  file_.append(line_.data(), line_.size());
}

} // namespace trainc
