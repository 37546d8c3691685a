// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/files/data_types.h"

#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace trainc {

// A named tensor in an arena, to be written or filled.
struct tensor_view {
  std::string name;
  data_type type;
  std::vector<int64_t> shape;
  char *data;
  int64_t bytes;
};

inline int64_t elements_of(const std::vector<int64_t> &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

inline tensor_view view_of(const tensor_place &tensor, std::string name, char *data) {
  return {std::move(name), tensor.type, shape_of(tensor), data, byte_count(tensor)};
}

} // namespace trainc
