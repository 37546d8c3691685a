// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with values of data: indexes out of range, numbers that are not finite.
#include "runtime/data/index_range.h"
#include "runtime/data/loader.h"
#include "runtime/failure.h"
#include "runtime/files/conversion.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace trainc {
namespace {

constexpr int64_t scanned_at_once = 1 << 16; // elements

// The first that is NaN or infinite; `count` where there is none.
template <typename Number>
int64_t not_finite_among(const std::vector<char> &values, int64_t count) {
  const auto *numbers = reinterpret_cast<const Number *>(values.data());
  return std::find_if(numbers, numbers + count,
                      [](Number number) { return !std::isfinite(number); }) -
         numbers;
}

} // namespace

void loader::check_indexes(const data_array &from, const input_place &input, int64_t first,
                           const void *values, int64_t count) const {
  if (input.index_bound == 0 || always_below(from.type, input.index_bound))
    return;
  const int64_t found = first_outside(input, values, count);
  if (found == count)
    return;
  const data_array::place at = from.place_of(first + found);
  const std::string place =
      format_text("element %lld (byte %lld)", static_cast<long long>(at.element),
                  static_cast<long long>(at.byte));
  throw failure(exit_data, *at.path + ": input '" + input.tensor.name +
                               "': " + outside_text(input, values, found, place));
}

void loader::scan(const data_array &from, const input_place &input, int64_t begin,
                  int64_t end) const {
  if (input.index_bound == 0 || always_below(from.type, input.index_bound))
    return;
  std::vector<char> raw(scanned_at_once * 8), values(scanned_at_once * 8);
  for (int64_t first = begin; first < end; first += scanned_at_once) {
    int64_t count = std::min(scanned_at_once, end - first);
    from.read(first, count, raw.data());
    convert(from.type, raw.data(), input.tensor.type, values.data(), count);
    check_indexes(from, input, first, values.data(), count);
  }
}

loader::range loader::share_of(int64_t count, int rank, int ranks) {
  auto border = [&](int index) { return count / ranks * index + count % ranks * index / ranks; };
  return {border(rank), border(rank + 1)};
}

void loader::check_values(int rank, int ranks) const {
  auto share = [&](const data_array &from, const input_place &input) {
    const range part = share_of(from.element_count(), rank, ranks);
    scan(from, input, part.begin, part.end);
  };
  for (const source &from : sources_)
    share(from.array, *from.input);
  for (const token_stream &stream : streams_) {
    share(stream.array, *token_input_);
    if (token_labels_ && token_labels_->index_bound != token_input_->index_bound)
      share(stream.array, *token_labels_);
  }
}

std::string loader::not_finite_in(const source &from, int64_t begin, int64_t end) const {
  const data_type taken = from.input->tensor.type; // as the program gets them
  if (!is_float(from.array.type) || (taken != data_type::f32 && taken != data_type::f64))
    return "";
  std::vector<char> raw(static_cast<size_t>(scanned_at_once * bytes_of(from.array.type)));
  std::vector<char> values(static_cast<size_t>(scanned_at_once * bytes_of(taken)));
  for (int64_t first = begin; first < end; first += scanned_at_once) {
    const int64_t count = std::min(scanned_at_once, end - first);
    from.array.read(first, count, raw.data());
    convert(from.array.type, raw.data(), taken, values.data(), count);
    const int64_t found = taken == data_type::f32 ? not_finite_among<float>(values, count)
                                                  : not_finite_among<double>(values, count);
    if (found == count)
      continue;
    const data_array::place at = from.array.place_of(first + found);
    const std::string sample =
        from.constant
            ? ""
            : " of sample " + std::to_string(at.element / std::max<int64_t>(from.row_elements, 1));
    return format_text("%s: input '%s': a value%s is NaN or infinite: element %lld (byte %lld)",
                       at.path->c_str(), from.input->tensor.name, sample.c_str(),
                       static_cast<long long>(at.element), static_cast<long long>(at.byte));
  }
  return "";
}

std::string loader::not_finite_in(data_part part, int64_t batch) {
  choose(part, batch);
  for (const source &from : sources_)
    for (const sample &chosen : chosen_) {
      const int64_t first = from.constant ? 0 : chosen.first * from.row_elements;
      const int64_t count = from.constant ? from.array.element_count() : from.row_elements;
      if (std::string found = not_finite_in(from, first, first + count); !found.empty())
        return found;
    }
  return "";
}

void loader::check_finite(int rank, int ranks) const {
  for (const source &from : sources_) {
    const range share = share_of(from.array.element_count(), rank, ranks);
    if (const std::string found = not_finite_in(from, share.begin, share.end); !found.empty())
      throw failure(exit_data, found + "\n  try: data without NaN and infinities");
  }
}

} // namespace trainc
