// SPDX-License-Identifier: Apache-2.0
#include "runtime/made_up_batch.h"

#include "runtime/data_types.h"
#include "runtime/random.h"

namespace trainc {

void make_up(const input_place &input, uint64_t seed, char *values) {
  const int64_t count = element_count(input.tensor);
  auto fill = [&](auto *elements) {
    using type = std::remove_pointer_t<decltype(elements)>;
    for (int64_t i = 0; i < count; ++i)
      if constexpr (std::is_floating_point_v<type>)
        elements[i] =
            static_cast<type>(static_cast<float>(random_uniform(seed, random_stream::made_up_data,
                                                                static_cast<uint64_t>(i))) *
                              0.99f);
      else
        elements[i] = input.index_bound > 0
                          ? static_cast<type>(random_bits(seed, random_stream::made_up_data,
                                                          static_cast<uint64_t>(i)) %
                                              static_cast<uint64_t>(input.index_bound))
                          : type{1};
  };
  switch (input.tensor.type) {
  case data_type::f32:
    return fill(reinterpret_cast<float *>(values));
  case data_type::f64:
    return fill(reinterpret_cast<double *>(values));
  case data_type::i64:
    return fill(reinterpret_cast<int64_t *>(values));
  case data_type::i32:
    return fill(reinterpret_cast<int32_t *>(values));
  case data_type::boolean:
    return fill(reinterpret_cast<uint8_t *>(values));
  }
}

} // namespace trainc
