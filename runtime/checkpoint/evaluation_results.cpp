// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/evaluation_results.h"

#include "runtime/files/json_text.h"

#include <algorithm>

namespace trainc {

std::vector<const char *> names_of_results(const program &program) {
  std::vector<const char *> names = {"loss"};
  if (program.loss_is_log_perplexity)
    names.push_back("perplexity");
  for (const metric_place &metric : program.metrics)
    names.push_back(metric.values.name);
  return names;
}

std::string held_out_member(const char *result) {
  return json_text(std::string(held_out_prefix) + result);
}

std::vector<std::string> names_of_metrics(const program &program) {
  std::vector<std::string> metrics = {"none", "loss"};
  for (const char *result : names_of_results(program)) {
    std::string name = std::string(held_out_prefix) + result;
    std::replace(name.begin(), name.end(), '_', '-');
    metrics.push_back(name);
  }
  return metrics;
}

} // namespace trainc
