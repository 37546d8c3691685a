// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/made_up_batch.h"

#include "runtime/files/data_types.h"
#include "runtime/random.h"

#include <algorithm>
#include <limits>

namespace trainc {

void make_up(const input_place &input, uint64_t seed, char *values) {
  const int64_t count = element_count(input.tensor);
  with_type(input.tensor.type, [&](auto zero) {
    using type = decltype(zero);
    auto *elements = reinterpret_cast<type *>(values);
    uint64_t bound = static_cast<uint64_t>(std::max<int64_t>(input.index_bound, 0));
    if constexpr (std::is_integral_v<type> &&
                  sizeof(type) < sizeof(int32_t)) // it may not have all of them
      bound = std::min(bound, uint64_t{std::numeric_limits<type>::max()} + 1);
    for (int64_t i = 0; i < count; ++i)
      if constexpr (!std::is_integral_v<type>)
        elements[i] =
            static_cast<type>(static_cast<float>(random_uniform(seed, random_stream::made_up_data,
                                                                static_cast<uint64_t>(i))) *
                              0.99f);
      else
        elements[i] = bound > 0 ? static_cast<type>(random_bits(seed, random_stream::made_up_data,
                                                                static_cast<uint64_t>(i)) %
                                                    bound)
                                : type{1};
  });
}

} // namespace trainc
