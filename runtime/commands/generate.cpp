// SPDX-License-Identifier: Apache-2.0
//
// `generate`: a byte-token language model continues a text.
#include "runtime/commands/commands.h"
#include "runtime/commands/text_writer.h"

#include <cstdio>
#include <optional>
#include <string>

namespace trainc {

int generate(run &run) {
  std::optional<text_writer> write;
  run.ranks.together([&] { write.emplace(run, run.options.seed, "generate"); });
  run.target.allocate(memory_use::forward, 1);
  std::string parameters = run.load_chosen_parameters();
  run.target.round_parameters();
  if (!run.is_first())
    return exit_success;
  fprintf(stderr, "parameters  %s\n", parameters.c_str());
  fputs(run.options.prompt.c_str(), stdout);
  (*write)(0, [](char byte) {
    fputc(byte, stdout);
    fflush(stdout);
    return true;
  });
  fputc('\n', stdout);
  return exit_success;
}

} // namespace trainc
