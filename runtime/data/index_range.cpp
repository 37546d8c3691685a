// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/index_range.h"

#include "runtime/failure.h"
#include "runtime/files/data_types.h"

namespace trainc {
namespace {

int64_t integer_at(data_type type, const void *values, int64_t number) {
  return with_type(type, [&](auto zero) {
    return static_cast<int64_t>(static_cast<const decltype(zero) *>(values)[number]);
  });
}

} // namespace

int64_t first_outside(const input_place &input, const void *values, int64_t count) {
  if (input.index_bound == 0)
    return count;
  return with_type(input.tensor.type, [&](auto zero) {
    const auto *elements = static_cast<const decltype(zero) *>(values);
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<int64_t>(elements[i]);
      const bool in_range = value >= input.index_low && value < input.index_bound;
      if (!in_range && !(input.has_ignore_index && value == input.ignore_index))
        return i;
    }
    return count;
  });
}

std::string outside_text(const input_place &input, const void *values, int64_t number,
                         const std::string &place) {
  std::string text = format_text(
      "value %lld at %s is outside [%lld, %lld)",
      static_cast<long long>(integer_at(input.tensor.type, values, number)), place.c_str(),
      static_cast<long long>(input.index_low), static_cast<long long>(input.index_bound));
  if (input.has_ignore_index)
    text += format_text(" and is not the ignored %lld", static_cast<long long>(input.ignore_index));
  return text;
}

} // namespace trainc
