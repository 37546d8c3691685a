// SPDX-License-Identifier: Apache-2.0
//
// Statistics of tensors as a file: a JSON object a line, in the order in which they were taken
// (docs/observe.md has the members).
#pragma once

#include "runtime/files/appended_file.h"
#include "runtime/observe/tensor_statistics.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trainc {

constexpr const char *statistics_format = "trainc-statistics";
constexpr int statistics_version = 1;

// What a tensor is to a step. `gradient` is of the loss of one micro-batch; `total_gradient` of a
// parameter, over the whole step, before it is clipped; `parameter` and `buffer` are what the step
// left, `update` is what it added.
enum class tensor_kind { input, value, gradient, total_gradient, parameter, buffer, update };
const char *name_of(tensor_kind kind);

struct watched_tensor {
  const std::string &name;
  tensor_kind kind;
  data_type type;
  const std::vector<int64_t> &shape;
};

// Lines of the file: its first one, of the model and the rank, and one of a tensor. A micro-batch
// below 0: of the step as a whole.
void append_head(std::string &text, const std::string &model, int rank, int ranks);
void append_line(std::string &text, int64_t step, int64_t micro_batch, const watched_tensor &tensor,
                 const tensor_statistics &found);

class statistics_file {
public:
  // Goes on with a file that is there. Throws `failure` (exit_disk).
  statistics_file(const std::string &path, const std::string &model, int rank, int ranks);

  void write(int64_t step, int64_t micro_batch, const watched_tensor &tensor,
             const tensor_statistics &found);
  // Whether the file was removed, which then is an error as below.
  void look() { file_.look(); }
  // An errno, where a line could not be written; nothing is written from then on.
  int error() const { return file_.error(); }
  const std::string &path() const { return path_; }

private:
  std::string path_, line_;
  appended_file file_;
};

} // namespace trainc
