// SPDX-License-Identifier: Apache-2.0
//
// The loader: which samples make batch number b, and their way from the files
// into the arena. Setting up, with its many ways to be wrong, is in
// loader_files.cpp.
#include "runtime/loader.h"

#include "runtime/conversion.h"
#include "runtime/crc32c.h"
#include "runtime/failure.h"

#include <algorithm>
#include <cstring>

namespace trainc {

// Tokens kept from training are counted in tokens, rows in rows.
loader::range loader::part_range(data_part part) const {
  int64_t all = tokens_ ? token_count_ : samples_;
  auto kept = static_cast<int64_t>(static_cast<double>(all) * holdout_);
  if (part == data_part::training)
    return {0, first_batches(all - kept)};
  if (part == data_part::held_out)
    return {all - kept, all};
  return {0, all};
}

// Rows or tokens of the training part, of as many.
int64_t loader::first_batches(int64_t available) const {
  if (training_batches_ == 0)
    return available;
  int64_t samples = training_batches_ * batch_;
  return std::min(available, tokens_ ? samples * window_ + 1 : samples);
}

// When shuffling, the windows of each epoch begin at another offset, so that
// with few tokens the borders of windows are not learnt. It costs one window,
// which must not be the last batch.
bool loader::offset_windows(data_part part) const {
  range tokens = part_range(part);
  return training_batches_ == 0 && shuffled(part) &&
         (tokens.end - tokens.begin - 1) / window_ - 1 >= batch_;
}

int64_t loader::samples(data_part part) const {
  range rows = part_range(part);
  if (!tokens_)
    return rows.end - rows.begin;
  int64_t windows = std::max<int64_t>(rows.end - rows.begin - 1, 0) / window_;
  return offset_windows(part) ? windows - 1 : windows;
}

int64_t loader::whole_batches(data_part part) const {
  return (samples(part) + (fills_up(part) || wraps(part) ? batch_ - 1 : 0)) / batch_;
}

double loader::batches_per_epoch() const {
  constexpr data_part part = data_part::training;
  return wraps(part) ? static_cast<double>(samples(part)) / static_cast<double>(batch_)
                     : static_cast<double>(batches(part));
}

int64_t loader::samples_in(data_part part, int64_t batch) const {
  if (wraps(part))
    return batch_;
  return std::min(batch_, samples(part) - batch % whole_batches(part) * batch_);
}

int64_t loader::batches(data_part part) const {
  int64_t available = samples(part);
  if (int64_t whole = whole_batches(part))
    return whole;
  const char *which = part == data_part::all        ? ""
                      : part == data_part::training ? "the training part of "
                                                    : "the held-out part of ";
  if (!tokens_ && sources_.empty())
    throw failure(exit_data, "the model has no input that data could fill");
  const std::string &path = tokens_ ? tokens_->file->path() : sources_.front().file->path();
  throw failure(exit_data,
                format_text("%s: %s%s %lld %s; one batch needs %lld\n  try: more data, or a model "
                            "compiled for a smaller batch",
                            path.c_str(), which, *which ? "the file has" : "has",
                            static_cast<long long>(available),
                            tokens_ ? format_text("windows of %lld tokens and a label",
                                                  static_cast<long long>(window_))
                                          .c_str()
                                    : "samples",
                            static_cast<long long>(batch_)));
}

int64_t loader::left_out(data_part part) const {
  return fills_up(part) || wraps(part) ? 0 : samples(part) % batch_;
}

std::vector<data_identity> loader::identities() const {
  constexpr int64_t block = 4096, blocks = 64;
  std::vector<data_identity> result;
  auto add = [&](const source &from) {
    data_identity identity = {from.input->tensor.name, from.file->path(), from.file->size(), 0};
    std::vector<char> bytes(block);
    int64_t last = std::max<int64_t>(identity.bytes - block, 0);
    for (int64_t i = 0; i <= blocks; ++i) {
      int64_t length = std::min(block, identity.bytes);
      from.file->read(last / blocks * i + last % blocks * i / blocks, bytes.data(), length);
      identity.digest = crc32c(identity.digest, bytes.data(), static_cast<size_t>(length));
    }
    result.push_back(identity);
  };
  for (const source &from : sources_)
    add(from);
  if (tokens_)
    add(*tokens_);
  return result;
}

int64_t loader::batch_after(int64_t taken, int64_t size) const {
  constexpr data_part part = data_part::training;
  if (size == batch_)
    return taken;
  if (wraps(part))
    return taken * size / batch_;
  int64_t before = (samples(part) + (fills_up(part) ? size - 1 : 0)) / size, now = batches(part);
  if (before == 0)
    return taken;
  return taken / before * now + std::min(taken % before * size / batch_, now);
}

void loader::begin_epoch(data_part part, int64_t epoch) {
  if (epoch == epoch_ && part == epoch_part_)
    return;
  epoch_ = epoch;
  epoch_part_ = part;
  window_offset_ = 0;
  if (!shuffled(part))
    return;
  auto number = static_cast<uint64_t>(epoch);
  order_ = permutation(static_cast<uint64_t>(samples(part)), seed_, number);
  if (tokens_ && offset_windows(part))
    window_offset_ = static_cast<int64_t>(random_bits(seed_, random_stream::window_offset, number) %
                                          static_cast<uint64_t>(window_));
}

// Which samples make the batch.
void loader::choose(data_part part, int64_t batch) {
  int64_t count = samples(part), per_epoch = whole_batches(part), begin = part_range(part).begin;
  for (int64_t row = 0; row < batch_; ++row) {
    int64_t epoch = batch / per_epoch, index = batch % per_epoch * batch_ + row;
    if (wraps(part)) {
      index = batch * batch_ + row;
      epoch = index / count;
      index %= count;
    }
    begin_epoch(part, epoch);
    index = std::min(index, count - 1); // filled up with the last sample
    if (shuffled(part))
      index = static_cast<int64_t>(order_(static_cast<uint64_t>(index)));
    chosen_[static_cast<size_t>(row)] =
        begin + (tokens_ ? window_offset_ + index * window_ : index);
  }
}

void loader::load(data_part part, int64_t batch, const input_target &target) {
  choose(part, batch);
  for (const source &from : sources_)
    load_rows(from, target);
  if (tokens_)
    load_windows(target);
  int64_t count = samples_in(part, batch);
  if (count == batch_ || for_prediction_)
    return;
  for (const source &from : sources_)
    if (!from.constant)
      ignore_rows(*from.input, count, target);
  if (token_labels_)
    ignore_rows(*token_labels_, count, target);
}

// From row `first` on; nothing where the model ignores no label.
void loader::ignore_rows(const input_place &input, int64_t first,
                         const input_target &target) const {
  if (!input.has_ignore_index)
    return;
  const tensor_place &place = input.tensor;
  int64_t elements = element_count(place), width = bytes_of(place.type);
  char *values = target(place);
  for (int64_t i = elements / batch_ * first; i < elements; ++i) // little-endian
    memcpy(values + i * width, &input.ignore_index, static_cast<size_t>(width));
}

void loader::load_rows(const source &from, const input_target &input_target) {
  const tensor_place &place = from.input->tensor;
  char *target = input_target(place);
  int64_t file_bytes = bytes_of(from.header.type) * from.row_elements;
  int64_t target_bytes = bytes_of(place.type) * from.row_elements;
  for (int64_t row = 0, rows = 1; row < from.rows; row += rows) {
    int64_t sample = from.constant ? 0 : chosen_[static_cast<size_t>(row)];
    // What follows each other in the file is read at once.
    rows = from.constant ? from.rows : 1;
    while (row + rows < from.rows && chosen_[static_cast<size_t>(row + rows)] == sample + rows)
      ++rows;
    from.file->read(from.header.data_offset + sample * file_bytes, staging_.data(),
                    file_bytes * rows);
    char *values = target + row * target_bytes;
    int64_t count = from.row_elements * rows;
    convert(from.header.type, staging_.data(), place.type, values, count);
    check_indexes(from, *from.input, sample * from.row_elements, values, place.type, count);
  }
}

void loader::load_windows(const input_target &target) {
  const source &from = *tokens_;
  int64_t token_bytes = bytes_of(from.header.type);
  auto row_of = [&](const input_place *input, int64_t row) {
    const tensor_place &place = input->tensor;
    return target(place) + row * window_ * bytes_of(place.type);
  };
  for (int64_t row = 0; row < batch_; ++row) {
    int64_t token = chosen_[static_cast<size_t>(row)];
    from.file->read(from.header.data_offset + token * token_bytes, staging_.data(),
                    (window_ + 1) * token_bytes);
    char *inputs = row_of(from.input, row);
    data_type type = from.input->tensor.type;
    convert(from.header.type, staging_.data(), type, inputs, window_);
    check_indexes(from, *from.input, token, inputs, type, window_);
    if (!token_labels_)
      continue;
    char *labels = row_of(token_labels_, row);
    type = token_labels_->tensor.type;
    convert(from.header.type, staging_.data() + token_bytes, type, labels, window_);
    check_indexes(from, *token_labels_, token + 1, labels, type, window_);
  }
}

void loader::check_indexes(const source &from, const input_place &input, int64_t file_element,
                           const void *values, data_type type, int64_t count) const {
  if (input.index_bound == 0 || always_below(from.header.type, input.index_bound))
    return;
  auto check = [&](auto *elements) {
    for (int64_t i = 0; i < count; ++i) {
      auto value = static_cast<int64_t>(elements[i]);
      bool in_range = value >= 0 && value < input.index_bound;
      if (in_range || (input.has_ignore_index && value == input.ignore_index))
        continue;
      int64_t element = file_element + i;
      int64_t offset = from.header.data_offset + element * bytes_of(from.header.type);
      throw failure(
          exit_data,
          format_text(
              "%s: input '%s': value %lld at element %lld (byte %lld) is outside [0, %lld)%s",
              from.file->path().c_str(), input.tensor.name, static_cast<long long>(value),
              static_cast<long long>(element), static_cast<long long>(offset),
              static_cast<long long>(input.index_bound),
              input.has_ignore_index ? format_text(" and is not the ignored %lld",
                                                   static_cast<long long>(input.ignore_index))
                                           .c_str()
                                     : ""));
    }
  };
  if (type == data_type::i64)
    check(static_cast<const int64_t *>(values));
  else if (type == data_type::i32)
    check(static_cast<const int32_t *>(values));
}

void loader::scan(const source &from, const input_place &input, int64_t begin, int64_t end) const {
  constexpr int64_t piece = 1 << 16; // elements
  data_type type = input.tensor.type;
  if (input.index_bound == 0 || always_below(from.header.type, input.index_bound) ||
      (type != data_type::i64 && type != data_type::i32))
    return;
  std::vector<char> raw(piece * 8), values(piece * 8);
  int64_t bytes = bytes_of(from.header.type);
  for (int64_t first = begin; first < end; first += piece) {
    int64_t count = std::min(piece, end - first);
    from.file->read(from.header.data_offset + first * bytes, raw.data(), count * bytes);
    convert(from.header.type, raw.data(), type, values.data(), count);
    check_indexes(from, input, first, values.data(), type, count);
  }
}

void loader::check_values(int rank, int ranks) const {
  auto share = [&](const source &from, const input_place &input) {
    int64_t count = from.header.element_count;
    auto border = [&](int index) { return count / ranks * index + count % ranks * index / ranks; };
    scan(from, input, border(rank), border(rank + 1));
  };
  for (const source &from : sources_)
    share(from, *from.input);
  if (tokens_)
    share(*tokens_, *tokens_->input);
  if (tokens_ && token_labels_ && token_labels_->index_bound != tokens_->input->index_bound)
    share(*tokens_, *token_labels_);
}

} // namespace trainc
