// SPDX-License-Identifier: Apache-2.0
//
// The loader: which samples make batch number b, and their way from the files
// into the arena. Setting up, with its many ways to be wrong, is in
// loader_files.cpp.
#include "runtime/data/loader.h"

#include "runtime/data/data_manifest.h"
#include "runtime/failure.h"
#include "runtime/files/conversion.h"

#include <algorithm>
#include <cstring>
#include <sys/stat.h>

namespace trainc {

loader::range loader::part_of(int64_t count, data_part part) const {
  auto kept = static_cast<int64_t>(static_cast<double>(count) * holdout_);
  if (part == data_part::training)
    return {0, count - kept};
  if (part == data_part::held_out)
    return {count - kept, count};
  return {0, count};
}

int64_t loader::windows(const token_stream &stream, data_part part) const {
  range tokens = part_of(stream.array.element_count(), part);
  int64_t whole = std::max<int64_t>(tokens.end - tokens.begin - 1, 0) / window_;
  return offsets_windows_ && part == data_part::training && whole > 0 ? whole - 1 : whole;
}

int64_t loader::samples(data_part part) const {
  range rows = part_of(samples_, part);
  int64_t count = rows.end - rows.begin;
  for (const token_stream &stream : streams_)
    count += windows(stream, part);
  if (part == data_part::training && training_batches_ > 0)
    count = std::min(count, training_batches_ * batch_);
  return count;
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
  if (streams_.empty() && sources_.empty())
    throw failure(exit_data, "the model has no input that data could fill");
  const data_array &array = streams_.empty() ? sources_.front().array : streams_.front().array;
  const int64_t least = fills_up(part) || wraps(part) ? 1 : batch_;
  throw failure(exit_data,
                format_text("%s: %s%s %lld %s; one batch needs %lld\n  try: more data%s",
                            array.name.c_str(), which, *which ? "the data has" : "has",
                            static_cast<long long>(available),
                            streams_.empty() ? "samples"
                                             : format_text("windows of %lld tokens and a label",
                                                           static_cast<long long>(window_))
                                                   .c_str(),
                            static_cast<long long>(least),
                            least > 1 ? ", or a model compiled for a smaller batch" : ""));
}

std::string left_out_text(int64_t samples, bool of_each_epoch) {
  const std::string which = of_each_epoch  ? counted(samples, "sample") + " of each epoch"
                            : samples == 1 ? "the last sample"
                                           : "the last " + counted(samples, "sample");
  return which +
         (samples == 1 ? " fills no batch and is left out" : " fill no batch and are left out");
}

int64_t loader::left_out(data_part part) const {
  return fills_up(part) || wraps(part) ? 0 : samples(part) % batch_;
}

void loader::check_contents(int rank, int ranks) const {
  int64_t number = 0;
  auto check = [&](const data_array &array) {
    for (const data_array::piece &piece : array.pieces)
      if (number++ % ranks == rank)
        check_all_contents(*piece.file);
  };
  for (const source &from : sources_)
    check(from.array);
  for (const auto &stream : streams_)
    check(stream.array);
}

std::vector<data_identity> loader::identities() const {
  std::vector<data_identity> result;
  auto add = [&](const input_place &input, const data_array &array, int64_t share) {
    for (const data_array::piece &piece : array.pieces) {
      result.push_back({input.tensor.name, piece.file->path(), piece.file->size(),
                        sampled_digest(*piece.file), share, name_of(array.type)});
      if (struct stat own; fstat(piece.file->descriptor(), &own) == 0)
        result.back().modified = own.st_mtim.tv_sec * int64_t{1'000'000'000} + own.st_mtim.tv_nsec;
    }
  };
  for (const source &from : sources_)
    add(*from.input, from.array, 0);
  for (size_t i = 0; i < streams_.size(); ++i)
    add(*token_input_, streams_[i].array, is_mixture() ? shares_[i] : 0);
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
  if (!shuffled(part))
    return;
  auto number = static_cast<uint64_t>(epoch);
  order_ = permutation(static_cast<uint64_t>(samples(part)), seed_, number);
  for (size_t i = 0; i < streams_.size(); ++i)
    streams_[i].window_offset = window_offset(number, i);
}

int64_t loader::window_offset(uint64_t epoch, size_t stream) const {
  uint64_t bits =
      random_bits(seed_, random_stream::window_offset, epoch, static_cast<uint32_t>(stream));
  return static_cast<int64_t>(bits % static_cast<uint64_t>(window_));
}

loader::sample loader::window_of(token_stream &stream, data_part part, int64_t index) {
  int64_t begin = part_of(stream.array.element_count(), part).begin;
  if (offsets_windows_ && part == data_part::training)
    begin += stream.window_offset;
  return {&stream, begin + index * window_};
}

loader::sample loader::sample_at(data_part part, int64_t index) {
  for (token_stream &stream : streams_) {
    int64_t count = windows(stream, part);
    if (index < count)
      return window_of(stream, part, index);
    index -= count;
  }
  return {nullptr, part_of(samples_, part).begin + index};
}

// Each stream has epochs of its own.
loader::sample loader::sample_of_mixture(int64_t position) {
  constexpr data_part part = data_part::training;
  mixture::draw drawn = mixture_(position);
  token_stream &stream = streams_[drawn.source];
  int64_t count = windows(stream, part), epoch = drawn.index / count, index = drawn.index % count;
  if (stream.epoch != epoch) {
    stream.epoch = epoch;
    auto number = static_cast<uint64_t>(epoch) | uint64_t{drawn.source} << 40;
    stream.window_offset = window_offset(number, drawn.source);
    stream.order = permutation(static_cast<uint64_t>(count), seed_, number);
  }
  if (shuffle_)
    index = static_cast<int64_t>(stream.order(static_cast<uint64_t>(index)));
  return window_of(stream, part, index);
}

// Which samples make the batch.
void loader::choose(data_part part, int64_t batch) {
  int64_t count = samples(part), per_epoch = whole_batches(part);
  for (int64_t row = 0; row < batch_; ++row) {
    int64_t epoch = batch / per_epoch, index = batch % per_epoch * batch_ + row;
    sample &chosen = chosen_[static_cast<size_t>(row)];
    if (wraps(part)) {
      int64_t position = batch * batch_ + row;
      epoch = position / count;
      index = position % count;
      if (is_mixture()) {
        chosen = sample_of_mixture(training_batches_ > 0 ? index : position);
        continue;
      }
    }
    begin_epoch(part, epoch);
    index = std::min(index, count - 1); // filled up with the last sample
    if (shuffled(part))
      index = static_cast<int64_t>(order_(static_cast<uint64_t>(index)));
    chosen = sample_at(part, index);
  }
}

void loader::load(data_part part, int64_t batch, const input_target &target) {
  choose(part, batch);
  for (const source &from : sources_)
    load_rows(from, target);
  if (!streams_.empty())
    load_windows(target);
  if (pictures_ && part == data_part::training)
    augment(batch, target);
  int64_t count = samples_in(part, batch);
  if (count == batch_ || for_prediction_)
    return;
  for (const source &from : sources_)
    if (!from.constant)
      ignore_rows(*from.input, count, target);
  if (token_labels_)
    ignore_rows(*token_labels_, count, target);
}

void loader::augment(int64_t batch, const input_target &target) {
  const tensor_place &place = pictures_->tensor;
  const picture_shape shape = {place.shape[1], place.shape[2], place.shape[3]};
  const int64_t bytes = bytes_of(place.type),
                picture_bytes = shape.channels * shape.height * shape.width * bytes;
  char *values = target(place);
  for (int64_t row = 0; row < batch_; ++row)
    changes_.apply(values + row * picture_bytes, shape, bytes, seed_, batch * batch_ + row,
                   picture_);
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
  int64_t target_bytes = bytes_of(place.type) * from.row_elements;
  auto row_of = [&](int64_t row) { return chosen_[static_cast<size_t>(row)].first; };
  for (int64_t row = 0, rows = 1; row < from.rows; row += rows) {
    int64_t first = from.constant ? 0 : row_of(row);
    // What follows each other in the file is read at once.
    rows = from.constant ? from.rows : 1;
    while (row + rows < from.rows && row_of(row + rows) == first + rows)
      ++rows;
    int64_t element = first * from.row_elements, count = rows * from.row_elements;
    from.array.read(element, count, staging_.data());
    char *values = target + row * target_bytes;
    convert(from.array.type, staging_.data(), place.type, values, count);
    check_indexes(from.array, *from.input, element, values, count);
  }
}

void loader::load_windows(const input_target &target) {
  for (int64_t row = 0; row < batch_; ++row) {
    const auto &[stream, token] = chosen_[static_cast<size_t>(row)];
    const data_array &array = stream->array;
    array.read(token, window_ + 1, staging_.data());
    auto fill = [&, from = &array, first = token](const input_place *input, int64_t shift) {
      const tensor_place &place = input->tensor;
      char *values = target(place) + row * window_ * bytes_of(place.type);
      convert(from->type, staging_.data() + shift * bytes_of(from->type), place.type, values,
              window_);
      check_indexes(*from, *input, first + shift, values, window_);
    };
    fill(token_input_, 0);
    if (token_labels_)
      fill(token_labels_, label_shift_);
  }
}

} // namespace trainc
