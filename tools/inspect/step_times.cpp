// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/step_times.h"

#include "runtime/failure.h"
#include "tools/simulate/json_document.h"

namespace trainc::inspect {

using nlohmann::json;

std::map<std::pair<std::string, int>, StepTime> readStepTimes(const std::string &profile) {
  const json document = simulate::readDocument(profile);
  std::map<std::pair<std::string, int>, StepTime> times;
  try {
    for (const json &rank : document.at("ranks"))
      if (rank.at("replica") == 0)
        for (const json &entry : rank.at("entries")) {
          int number = 0;
          for (const json &step : entry.at("steps"))
            times.emplace(std::pair(entry.at("entry").get<std::string>(), number++),
                          StepTime{step.at("seconds"), entry.at("times")});
        }
  } catch (const json::exception &problem) {
    refuseProfile(profile, problem.what());
  }
  return times;
}

void refuseProfile(const std::string &path, const char *what) {
  throw failure(exit_data,
                path + ": is not a profile: " + what + "\n  try: trainer profile -o FILE again");
}

} // namespace trainc::inspect
