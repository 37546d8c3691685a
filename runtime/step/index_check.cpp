// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/index_check.h"

#include "runtime/failure.h"

namespace trainc {

void keep_index_check(device &target, const program &program, const tensor_place &check, int slot,
                      int stash_slot) {
  if (program.checked_indexes.empty())
    return;
  for (int i = 0; i < 2; ++i)
    target.keep({check.name, data_type::f64, 0, {}, check.arena, check.offset + 8 * i}, slot + i,
                stash_slot);
}

std::string index_problem(const device &target, const program &program, int slot) {
  const auto number = program.checked_indexes.empty() ? 0 : static_cast<int64_t>(target.kept(slot));
  if (number < 1 || number > std::ssize(program.checked_indexes))
    return "";
  const checked_index &index = program.checked_indexes[number - 1];
  return format_text("node '%s': the model computes the index %.0f, which is outside [%lld, %lld)\n"
                     "  try: other data; indexes follow from the model's inputs",
                     index.node, target.kept(slot + 1), static_cast<long long>(index.low),
                     static_cast<long long>(index.end));
}

} // namespace trainc
