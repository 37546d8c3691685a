// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/initial_values.h"

#include "runtime/checkpoint/module_weights.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/run/agreement.h"

namespace trainc {

// Those of a configuration may have been edited.
static std::vector<name_change> changes_of(const std::vector<std::string> &renames) {
  std::vector<name_change> changes;
  for (const std::string &words : renames) {
    std::string why;
    std::optional<name_change> change = name_change::parse(words, why);
    if (!change)
      throw failure(exit_usage, "option --rename: '" + words + "': " + why);
    changes.push_back(std::move(*change));
  }
  return changes;
}

void take_initial_values(run &run, const run_origin &origin) {
  const std::string &path = origin.parameters;
  std::string content;
  run.ranks.together([&] {
    const file_content own = content_of_weights(path);
    content =
        format_text("%lld bytes with digest %08x", static_cast<long long>(own.bytes), own.digest);
  });
  refuse_differences(run.ranks, {{"option --initialise", content, path}}, exit_checkpoint);
  run.ranks.together([&] {
    read_weights(
        run.prog, run.places(), run.target, path, [&](const std::string &text) { run.warn(text); },
        changes_of(origin.renames));
  });
}

} // namespace trainc
