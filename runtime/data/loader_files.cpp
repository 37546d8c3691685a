// SPDX-License-Identifier: Apache-2.0
//
// The loader's set-up: opens the files of --data, --constant and --tokens, finds the inputs
// they fill and compares types and shapes. Every problem is collected.
#include "runtime/data/loader.h"
#include "runtime/failure.h"
#include "runtime/files/conversion.h"

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
      rest_(request.rest), changes_(request.changes) {
  problem_list problems;
  open_data(request.data, /*constant=*/false, problems);
  open_data(request.constants, /*constant=*/true, problems);
  if (!request.tokens.empty())
    open_tokens(request, problems);
  refuse_missing(request, problems);
  problems.throw_if_any(exit_data);
  settle_batch(problems);
  if (request.may_lack_data && sources_.empty() && !token_input_)
    samples_ = 1; // batches of nothing
  problems.throw_if_any(exit_data);
  partial_batches_ = request.partial_batches && tells_samples_apart();
  if (rest_ == leftovers::pad && !masks_labels())
    throw failure(
        exit_usage,
        "option --leftovers pad: the program has no mask for rows that are "
        "no samples: its loss, or a part of it, ignores no label\n  try: --leftovers wrap, or "
        "drop");
  if (rest_ == leftovers::pad && is_mixture())
    throw failure(exit_usage, "option --leftovers pad: an epoch of files with weights has no end "
                              "that could be filled up\n  try: --leftovers wrap");
  settle_offsets();
  if (!changes_.does_nothing())
    settle_pictures();

  chosen_.resize(static_cast<size_t>(batch_));
  int64_t largest = 0;
  for (const token_stream &stream : streams_)
    largest = std::max(largest, (window_ + 1) * bytes_of(stream.array.type));
  for (const source &from : sources_)
    largest = std::max(largest, from.rows * from.row_elements * bytes_of(from.array.type));
  staging_.resize(static_cast<size_t>(largest));
}

// What --augment changes: the one input of samples, channels, rows and columns.
void loader::settle_pictures() {
  const std::string option = "option --augment: ";
  for (const source &from : sources_) {
    if (from.constant || is_label(*from.input) || from.input->tensor.rank != 4)
      continue;
    if (pictures_)
      throw failure(exit_usage, option + "'" + pictures_->tensor.name + "' and '" +
                                    from.input->tensor.name +
                                    "' are both pictures\n  try: data that have been augmented");
    pictures_ = from.input;
  }
  if (!pictures_)
    throw failure(exit_usage, option + "no input has samples, channels, rows and columns\n  try: a "
                                       "run without it");
  const tensor_place &place = pictures_->tensor;
  if (const int64_t most = std::min(place.shape[2], place.shape[3]);
      std::max(changes_.crop, changes_.erase) >= most)
    throw failure(exit_usage,
                  option + format_text("pictures of '%s' have %lld x %lld pixels\n  try: "
                                       "fewer for crop and erase",
                                       place.name, static_cast<long long>(place.shape[2]),
                                       static_cast<long long>(place.shape[3])));
  check_beside_pictures();
  picture_.resize(static_cast<size_t>(byte_count(place) / batch_));
}

// Labels of pixels, masks and weights of any resolution would have to be changed alike.
void loader::check_beside_pictures() const {
  for (const source &from : sources_) {
    const tensor_place &other = from.input->tensor;
    if (from.input != pictures_ && !from.constant && other.rank >= 3)
      throw failure(exit_usage, std::string("option --augment: '") + other.name +
                                    "' has several axes, as what belongs to pixels, and would stay "
                                    "as it is\n  try: data that have been augmented");
  }
}

// Windows begin elsewhere in each epoch only where each stream can lose one, and they still
// fill a batch.
void loader::settle_offsets() {
  constexpr data_part part = data_part::training;
  if (!shuffled(part) || training_batches_ > 0)
    return;
  int64_t left = 0;
  for (const token_stream &stream : streams_) {
    int64_t own = windows(stream, part) - 1;
    if (own < 1)
      return;
    left += own;
  }
  offsets_windows_ = left >= batch_;
}

// Whether rows can be kept from the loss of a step. Of a loss of several parts each counts labels,
// and has some of its own that can be ignored.
bool loader::masks_labels() const {
  if (!program_.loss_parts.empty())
    return weighed_parts() == std::ssize(program_.loss_parts) &&
           labels_can_be_ignored(weighed_parts());
  if (!program_.loss_weight.name)
    return false;
  for (const source &from : sources_)
    if (!from.constant && from.input->has_ignore_index)
      return true;
  return token_labels_ && token_labels_->has_ignore_index;
}

int64_t loader::weighed_parts() const {
  return std::ranges::count_if(program_.loss_parts,
                               [](const loss_part &part) { return part.weight.name != nullptr; });
}

bool loader::labels_can_be_ignored(int64_t parts) const {
  return parts <= std::ranges::count_if(program_.inputs, [](const input_place &input) {
           return input.is_label && input.has_ignore_index;
         });
}

// Whether an evaluation can.
bool loader::tells_samples_apart() const {
  if (!program_.loss_parts.empty())
    return labels_can_be_ignored(weighed_parts()) &&
           std::ranges::all_of(program_.loss_parts, [this](const loss_part &part) {
             return part.weight.name ||
                    (part.sample_losses.name && part.sample_losses.shape[0] == batch_);
           });
  if (!program_.loss_weight.name)
    return program_.sample_losses.name && program_.sample_losses.shape[0] == batch_;
  return masks_labels();
}

bool loader::fills(const input_place &input) const {
  for (const source &from : sources_)
    if (from.input == &input)
      return true;
  return token_input_ == &input || token_labels_ == &input;
}

named_file named_file_of(const program &program, const std::string &item) {
  const size_t equals = item.find('=');
  named_file found = {item.substr(0, equals == std::string::npos ? 0 : equals), "", nullptr};
  for (const input_place &input : program.inputs) {
    const std::string one = input.tensor.name;
    if (item.rfind(one + "=", 0) != 0 || (found.input && one.size() < found.name.size()))
      continue;
    found.input = &input;
    found.name = one;
  }
  found.file = equals == std::string::npos ? item : item.substr(found.name.size() + 1);
  return found;
}

void loader::open_data(const std::vector<std::string> &items, bool constant,
                       problem_list &problems) {
  const std::string option = constant ? "--constant " : "--data ";
  for (const std::string &item : items) {
    const named_file given = named_file_of(program_, item);
    std::string known;
    for (int64_t i = 0; i < std::ssize(program_.inputs); ++i)
      known += std::string(i ? ", " : "") + program_.inputs[i].tensor.name;
    if (!given.input)
      problems.add(option + item + ": the model has no input '" + given.name +
                   "'\n  try: " + known);
    else if (fills(*given.input))
      problems.add(option + item + ": input '" + given.name + "' is given twice");
    else
      open_source(*given.input, given.file, constant, problems);
  }
}

// Rounded to integers, class probabilities would be zeros.
static std::string advice_of_type(const input_place &input, file_type type) {
  const std::string conversion =
      std::string("array.astype(numpy.") + name_of(input.tensor.type) + ")";
  if (!input.is_label || !input.index_bound || !is_float(type))
    return "\n  try: " + conversion;
  return "\n  try: " + conversion +
         " where they are class indices; for class probabilities, "
         "trainc --loss cross_entropy,target=probabilities";
}

void loader::open_source(const input_place &input, const std::string &name, bool constant,
                         problem_list &problems) {
  const tensor_place &tensor = input.tensor;
  source from{&input, {}, 1, 1, constant || tensor.rank == 0};
  try {
    from.array = open_array(name, tensor.name);
    std::string start = name + ": input '" + tensor.name + "': ";
    if (converts_by_rounding(from.array.type, tensor.type)) {
      if (tensor.type == data_type::f32 && from.array.type != file_type::f32)
        notes_.push_back(name + ": " + name_of(from.array.type) + ", converted to float32");
    } else if (!converts_without_loss(from.array.type, tensor.type))
      problems.add(start + "dtype " + name_of(from.array.type) + ", expected " +
                   name_of(tensor.type) + advice_of_type(input, from.array.type));
    if (tensor.rank == 0 && from.array.shape.empty())
      from.array.shape = {1};
    const std::vector<int64_t> &shape = from.array.shape;
    bool fits = static_cast<int>(shape.size()) == std::max(tensor.rank, 1);
    for (int axis = constant ? 0 : 1; fits && axis < tensor.rank; ++axis)
      fits = shape[static_cast<size_t>(axis)] == tensor.shape[axis];
    from.rows = tensor.rank ? tensor.shape[0] : 1;
    from.row_elements = element_count(tensor) / std::max<int64_t>(from.rows, 1);
    if (!fits)
      problems.add(start + "shape " + shape_text(shape) + ", expected " +
                   (constant ? shape_text(shape_of(tensor)) : batch_shape_text(tensor)));
  } catch (const failure &error) {
    problems.add(error.message);
  }
  sources_.push_back(std::move(from)); // also what is wrong: it is not missing
}

void loader::open_tokens(const data_request &request, problem_list &problems) {
  match_token_inputs(request, problems);
  std::vector<double> weights;
  for (const std::string &item : request.tokens) {
    try {
      auto [name, weight] = weighted(item);
      token_stream stream;
      stream.array = trainc::open_tokens(name, request.token_type,
                                         token_input_ ? token_input_->index_bound : 0);
      weights.push_back(weight);
      if (token_input_ && !converts_without_loss(stream.array.type, token_input_->tensor.type))
        problems.add(name + ": tokens of dtype " + name_of(stream.array.type) +
                     ", expected integers that fit " + name_of(token_input_->tensor.type));
      streams_.push_back(std::move(stream));
    } catch (const failure &error) {
      problems.add(error.message);
    }
  }
  if (problems.empty())
    settle_weights(weights, problems);
}

void loader::settle_weights(const std::vector<double> &weights, problem_list &problems) {
  auto given = std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; });
  if (given == 0 || for_prediction_)
    return;
  if (given != static_cast<std::ptrdiff_t>(weights.size())) {
    problems.add(
        "option --tokens: some files have a weight and others have none\n  try: FILE:WEIGHT "
        "for each");
    return;
  }
  shares_ = mixture::shares_of(weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (shares_[i] == 0)
      problems.add(format_text("option --tokens: %s: its weight is below %g of all",
                               streams_[i].array.name.c_str(), 1.0 / mixture::block_size));
    else if (windows(streams_[i], data_part::training) == 0)
      problems.add(format_text("%s: holds no window of %lld tokens and a label for training",
                               streams_[i].array.name.c_str(), static_cast<long long>(window_)));
  }
  mixture_ = mixture(shares_, seed_);
}

loader::token_inputs loader::find_token_inputs() const {
  token_inputs found;
  for (const input_place &input : program_.inputs) {
    if (!is_integer(input.tensor.type))
      continue;
    const bool is_row_of_tokens = !is_label(input) && input.tensor.rank == 2;
    if (fills(input)) {
      found.taken = is_row_of_tokens ? &input : found.taken;
    } else if (is_label(input)) {
      found.labels = &input;
    } else if (is_row_of_tokens) {
      found.tokens = &input;
      ++found.candidates;
    }
  }
  return found;
}

void loader::match_token_inputs(const data_request &request, problem_list &problems) {
  const token_inputs found = find_token_inputs();
  const std::string option = "--tokens " + request.tokens.front();
  if (found.candidates == 0 && found.taken) {
    problems.add(option + ": input '" + found.taken->tensor.name +
                 "', which they would fill, has data of --data\n  try: one of the two");
    return;
  }
  if (found.candidates != 1) {
    problems.add(option + ": the model has " + (found.candidates ? "several inputs" : "no input") +
                 " of integers [batch, length] that tokens could fill\n  try: --data NAME=FILE.npy "
                 "for each input");
    return;
  }
  if (!found.labels_fit()) {
    const tensor_place &labels = found.labels->tensor;
    problems.add(option + ": input '" + labels.name + "' of shape " + shape_text(shape_of(labels)) +
                 " does not hold one label per token");
    return;
  }
  if (found.labels && !found.labels->is_label) {
    if (!request.label_shift)
      problems.add(option + ": the loss is the model's own, and so is input '" +
                   found.labels->tensor.name +
                   "', which the model may shift itself\n  try: --labels-of-tokens same, as "
                   "transformers' models take them, or --labels-of-tokens next, where the model "
                   "compares token by token");
    label_shift_ = request.label_shift.value_or(1);
  }
  token_input_ = found.tokens;
  token_labels_ = found.labels;
  window_ = token_input_->tensor.shape[1];
}

void loader::refuse_missing(const data_request &request, problem_list &problems) const {
  if (!request.tokens.empty() && !token_input_)
    return; // said already
  std::string missing, hint;
  for (const input_place &input : program_.inputs) {
    const tensor_place &tensor = input.tensor;
    if (fills(input) || request.may_lack_data || (for_prediction_ && input.is_label))
      continue;
    missing += std::string(missing.empty() ? "'" : ", '") + tensor.name + "' (" +
               name_of(tensor.type) + " " + shape_text(shape_of(tensor)) + ")";
    hint += std::string(" --data ") + tensor.name + "=FILE.npy";
  }
  if (const token_inputs found = find_token_inputs();
      request.tokens.empty() && found.candidates == 1 && found.labels_fit())
    hint += ", or --tokens FILE of text";
  if (!missing.empty())
    problems.add("no data for input " + missing + "\n  try:" + hint);
}

// Whether batches of so many samples fit all data: what is sliced then has one number of samples,
// and all else is the same for every batch.
bool loader::fits_batch(int64_t batch) const {
  int64_t samples = -1;
  for (const source &from : sources_) {
    int64_t rows = from.array.shape[0];
    if (from.constant)
      continue;
    if (from.rows != batch && rows != from.rows)
      return false;
    if (from.rows == batch && samples >= 0 && rows != samples)
      return false;
    if (from.rows == batch)
      samples = rows;
  }
  return true;
}

// How many samples a batch has. Where the inputs' first axes differ (a mask has another one, say),
// it is the one that fits all files; of several the labels' one, else the largest.
void loader::settle_batch(problem_list &problems) {
  if (token_input_)
    batch_ = token_input_->tensor.shape[0];
  int64_t best = -1;
  for (const source &from : sources_) {
    if (token_input_ || from.constant)
      continue;
    int64_t rank = (fits_batch(from.rows) ? 2 : 0) + (from.input->is_label ? 1 : 0);
    if (rank > best || (rank == best && from.rows > batch_))
      batch_ = from.rows;
    best = std::max(best, rank);
  }
  if (for_prediction_ && sources_.empty() && !token_input_)
    samples_ = 1; // a model without inputs has one answer
  const source *first = nullptr;
  for (source &from : sources_) {
    if (from.constant)
      continue;
    int64_t rows = from.array.shape[0];
    std::string start = from.array.name + ": input '" + from.input->tensor.name + "': ";
    if (token_input_ || from.rows != batch_) {
      from.constant = rows == from.rows;
      if (!from.constant)
        problems.add(start + "has " + std::to_string(rows) +
                     " rows; this input is the same for every batch and needs " +
                     std::to_string(from.rows));
    } else if (!first) {
      first = &from;
      samples_ = rows;
    } else if (rows != samples_) {
      problems.add(start + "has " + counted(rows, "sample") + ", but " + first->array.name +
                   " has " + std::to_string(samples_));
    }
  }
}

} // namespace trainc
