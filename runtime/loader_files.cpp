// SPDX-License-Identifier: Apache-2.0
//
// The loader's set-up: opens the files of --data and --tokens, finds the inputs
// they fill and compares types and shapes. Every problem is collected.
#include "runtime/conversion.h"
#include "runtime/failure.h"
#include "runtime/loader.h"

#include <algorithm>
#include <cstring>

namespace trainc {
namespace {

std::string batch_shape_text(const tensor_place &tensor) {
  std::string text = "[samples";
  for (int axis = 1; axis < tensor.rank; ++axis)
    text += ", " + std::to_string(tensor.shape[axis]);
  return text + "]";
}

bool is_integer(data_type type) { return type == data_type::i64 || type == data_type::i32; }

// Labels are what the compiler says, or what PyTorch's users call so when the
// model brings its own loss.
bool is_label(const input_place &input) {
  std::string name = input.tensor.name;
  return input.is_label || name == "labels" || name == "targets";
}

} // namespace

loader::loader(const program &program, const data_request &request)
    : program_(program), holdout_(request.holdout), training_batches_(request.training_batches),
      shuffle_(request.shuffle), for_prediction_(request.for_prediction), seed_(request.seed),
      rest_(request.rest) {
  problem_list problems;
  open_data(request, problems);
  if (!request.tokens.empty())
    open_tokens(request, problems);
  refuse_missing(request, problems);
  problems.throw_if_any(exit_data);
  settle_batch(problems);
  problems.throw_if_any(exit_data);
  partial_batches_ = request.partial_batches && tells_samples_apart();
  if (rest_ == leftovers::pad && !masks_labels())
    throw failure(exit_usage, "option --leftovers pad: the program has no mask for rows that are "
                              "no samples: its loss ignores no label\n  try: --leftovers wrap, or "
                              "drop");
  chosen_.resize(static_cast<size_t>(batch_));

  int64_t largest = tokens_ ? (window_ + 1) * bytes_of(tokens_->header.type) : 0;
  for (const source &from : sources_)
    largest = std::max(largest, from.rows * from.row_elements * bytes_of(from.header.type));
  staging_.resize(static_cast<size_t>(largest));
}

// Whether rows can be kept from the loss of a step.
bool loader::masks_labels() const {
  if (!program_.loss_weight.name)
    return false;
  for (const source &from : sources_)
    if (!from.constant && from.input->has_ignore_index)
      return true;
  return token_labels_ && token_labels_->has_ignore_index;
}

// Whether an evaluation can.
bool loader::tells_samples_apart() const {
  if (!program_.loss_weight.name)
    return program_.sample_losses.name && program_.sample_losses.shape[0] == batch_;
  return masks_labels();
}

bool loader::has_source(const input_place &input) const {
  for (const source &from : sources_)
    if (from.input == &input)
      return true;
  return (tokens_ && tokens_->input == &input) || token_labels_ == &input;
}

void loader::open_data(const data_request &request, problem_list &problems) {
  for (const std::string &item : request.data) {
    size_t equals = item.find('=');
    std::string name = item.substr(0, equals), path = item.substr(equals + 1);
    const input_place *input = nullptr;
    std::string known;
    for (int64_t i = 0; i < program_.input_count; ++i) {
      if (name == program_.inputs[i].tensor.name)
        input = &program_.inputs[i];
      known += std::string(i ? ", " : "") + program_.inputs[i].tensor.name;
    }
    if (!input)
      problems.add("--data " + item + ": the model has no input '" + name + "'\n  try: " + known);
    else if (has_source(*input))
      problems.add("--data " + item + ": input '" + name + "' is given twice");
    else
      open_source(*input, path, problems);
  }
}

void loader::open_source(const input_place &input, const std::string &path,
                         problem_list &problems) {
  const tensor_place &tensor = input.tensor;
  try {
    source from{&input, std::make_unique<input_file>(path, exit_data), {}, 1, 1};
    from.header = read_npy_header(*from.file);
    std::string start = path + ": input '" + tensor.name + "': ";
    if (!converts_without_loss(from.header.type, tensor.type))
      problems.add(start + "dtype " + name_of(from.header.type) + ", expected " +
                   name_of(tensor.type) + "\n  try: array.astype(numpy." + name_of(tensor.type) +
                   ")");
    if (tensor.rank == 0 && from.header.shape.empty())
      from.header.shape = {1};
    const std::vector<int64_t> &shape = from.header.shape;
    bool fits = static_cast<int>(shape.size()) == std::max(tensor.rank, 1);
    for (int axis = 1; fits && axis < tensor.rank; ++axis)
      fits = shape[static_cast<size_t>(axis)] == tensor.shape[axis];
    if (!fits) {
      problems.add(start + "shape " + shape_text(shape.data(), shape.size()) + ", expected " +
                   batch_shape_text(tensor));
      sources_.push_back(std::move(from)); // it is not missing too
      return;
    }
    from.rows = tensor.rank ? tensor.shape[0] : 1;
    from.row_elements = element_count(tensor) / std::max<int64_t>(from.rows, 1);
    sources_.push_back(std::move(from));
  } catch (const failure &error) {
    problems.add(error.message);
    sources_.push_back({&input, nullptr, {}, 1, 1});
  }
}

void loader::open_tokens(const data_request &request, problem_list &problems) {
  match_token_inputs(request, problems);
  try {
    source from{tokens_ ? tokens_->input : nullptr,
                std::make_unique<input_file>(request.tokens, exit_data),
                {request.token_type, {}, 0, 0},
                1,
                1};
    bool is_npy = request.tokens.size() > 4 &&
                  request.tokens.compare(request.tokens.size() - 4, 4, ".npy") == 0;
    if (is_npy) {
      from.header = read_npy_header(*from.file);
      if (from.header.shape.size() != 1)
        problems.add(request.tokens + ": shape " +
                     shape_text(from.header.shape.data(), from.header.shape.size()) +
                     ", expected a flat array [tokens]");
    } else {
      int64_t bytes = bytes_of(request.token_type);
      if (from.file->size() % bytes != 0)
        problems.add(request.tokens + ": " + std::to_string(from.file->size()) +
                     " bytes are no whole number of " + name_of(request.token_type) + " tokens");
      from.header.element_count = from.file->size() / bytes;
    }
    token_count_ = from.header.element_count;
    if (tokens_ && !converts_without_loss(from.header.type, tokens_->input->tensor.type))
      problems.add(request.tokens + ": tokens of dtype " + name_of(from.header.type) +
                   ", expected integers that fit " + name_of(tokens_->input->tensor.type));
    if (tokens_)
      tokens_ = std::move(from);
  } catch (const failure &error) {
    problems.add(error.message);
  }
}

void loader::match_token_inputs(const data_request &request, problem_list &problems) {
  const input_place *found = nullptr, *labels = nullptr;
  int candidates = 0;
  for (int64_t i = 0; i < program_.input_count; ++i) {
    const input_place &input = program_.inputs[i];
    if (has_source(input) || !is_integer(input.tensor.type))
      continue;
    if (is_label(input)) {
      labels = &input;
    } else if (input.tensor.rank == 2) {
      found = &input;
      ++candidates;
    }
  }
  if (candidates != 1) {
    problems.add("--tokens " + request.tokens + ": the model has " +
                 (candidates ? "several inputs" : "no input") +
                 " of integers [batch, length] that tokens could fill\n  try: --data NAME=FILE.npy "
                 "for each input");
    return;
  }
  if (labels && element_count(labels->tensor) != element_count(found->tensor)) {
    problems.add("--tokens " + request.tokens + ": input '" + labels->tensor.name + "' of shape " +
                 shape_text(labels->tensor.shape, static_cast<size_t>(labels->tensor.rank)) +
                 " does not hold one label per token");
    return;
  }
  tokens_ = source{found, nullptr, {}, 1, 1};
  token_labels_ = labels;
  window_ = found->tensor.shape[1];
}

void loader::refuse_missing(const data_request &request, problem_list &problems) const {
  if (!request.tokens.empty() && !tokens_)
    return; // said already
  std::string missing, hint;
  for (int64_t i = 0; i < program_.input_count; ++i) {
    const tensor_place &tensor = program_.inputs[i].tensor;
    if (has_source(program_.inputs[i]) || (for_prediction_ && program_.inputs[i].is_label))
      continue;
    missing += std::string(missing.empty() ? "'" : ", '") + tensor.name + "' (" +
               name_of(tensor.type) + " " +
               shape_text(tensor.shape, static_cast<size_t>(tensor.rank)) + ")";
    hint += std::string(" --data ") + tensor.name + "=FILE.npy";
  }
  if (!missing.empty())
    problems.add("no data for input " + missing + "\n  try:" + hint);
}

// All files that are sliced must have the same number of samples. A file that
// holds exactly one batch of an input with another first axis (a mask, say)
// is the same for every batch.
void loader::settle_batch(problem_list &problems) {
  if (tokens_) {
    batch_ = tokens_->input->tensor.shape[0];
  } else {
    for (const source &from : sources_)
      batch_ = std::max(batch_, from.rows);
  }
  if (for_prediction_ && sources_.empty() && !tokens_)
    samples_ = 1; // a model without inputs has one answer
  const source *first = nullptr;
  for (source &from : sources_) {
    int64_t rows = from.header.shape[0];
    std::string start = from.file->path() + ": input '" + from.input->tensor.name + "': ";
    if (tokens_ || from.rows != batch_) {
      from.constant = rows == from.rows;
      if (!from.constant)
        problems.add(start + "has " + std::to_string(rows) +
                     " rows; this input is the same for every batch and needs " +
                     std::to_string(from.rows));
    } else if (!first) {
      first = &from;
      samples_ = rows;
    } else if (rows != samples_) {
      problems.add(start + "has " + std::to_string(rows) + " samples, but " + first->file->path() +
                   " has " + std::to_string(samples_));
    }
  }
}

} // namespace trainc
