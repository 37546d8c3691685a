// SPDX-License-Identifier: Apache-2.0
//
// `info`: what the compiler built.
#include "runtime/commands/commands.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace trainc {

int info(run &run) {
  if (!run.is_first())
    return exit_success;
  auto rows = describe(run.prog);
  if (run.options.json) {
    nlohmann::ordered_json object;
    std::string current;
    for (auto &[name, value] : rows) {
      current = name.empty() ? current : name;
      object[current].push_back(value);
    }
    object["kernels"] = run.prog.kernel_list;
    printf("%s\n", object.dump().c_str());
    return exit_success;
  }
  for (auto &[name, value] : rows)
    printf("%-22s %s\n", name.c_str(), value.c_str());
  printf("\nkernels\n%s", run.prog.kernel_list);
  return exit_success;
}

} // namespace trainc
