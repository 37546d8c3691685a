// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/initial_values.h"

#include "runtime/checkpoint/module_weights.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/run/agreement.h"

namespace trainc {

void take_initial_values(run &run, const std::string &path) {
  std::string content;
  run.ranks.together([&] {
    const file_content own = content_of_weights(path);
    content =
        format_text("%lld bytes with digest %08x", static_cast<long long>(own.bytes), own.digest);
  });
  refuse_differences(run.ranks, {{"option --initialise", content, path}}, exit_checkpoint);
  run.ranks.together([&] {
    read_weights(run.prog, run.places(), run.target, path,
                 [&](const std::string &text) { run.warn(text); });
  });
}

} // namespace trainc
