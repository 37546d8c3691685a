// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/memory_rows.h"

#include <cstdio>
#include <string_view>

namespace trainc {
namespace {

// Columns that are left out where they are 0.
bool is_rare(const char *name) {
  for (const char *rare : {"accumulators", "messages", "constants"})
    if (std::string_view(name) == rare)
      return true;
  return false;
}

} // namespace

named_bytes memory_row(const rank_memory &planned, const phase_memory &phase) {
  named_bytes row = {{"parameters", planned.parameters - planned.buffers},
                     {"buffers", planned.buffers},
                     {"gradients", planned.gradients},
                     {"accumulators", planned.accumulators},
                     {"optimizer_state", planned.state},
                     {"activations", phase.activations},
                     {"stash", phase.stash},
                     {"messages", planned.messages},
                     {"workspace", planned.workspace},
                     {"constants", planned.constants},
                     {"planned", planned.bytes()},
                     {"resident", phase.resident},
                     {"device_used", phase.device_used},
                     {"device_free", phase.device_free}};
  std::erase_if(row, [](const auto &column) { return column.second < 0; });
  return row;
}

std::string memory_text(memory_phase phase, const named_bytes &row) {
  std::string text = std::string("phase: ") + name_of(phase);
  for (const auto &[name, bytes] : row) {
    if (bytes == 0 && is_rare(name))
      continue;
    char number[32];
    const double mebibytes = static_cast<double>(bytes) / 0x1p20;
    snprintf(number, sizeof number, "%.*f", mebibytes < 10 ? 3 : 1, mebibytes);
    text += std::string(" | ") + name + ": " + number;
  }
  return text;
}

} // namespace trainc
