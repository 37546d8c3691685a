// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/report.h"

#include "tools/inspect/program_report.h"
#include "tools/inspect/run_report.h"

namespace trainc::inspect {

using nlohmann::ordered_json;

namespace {

constexpr std::string_view kPage =
#include "tools/inspect/page.inc"
    ;
constexpr std::string_view kDataGoesHere = "{{data}}";

/// For an element `script`: `<` begins no tag, and no comment.
std::string scriptText(const ordered_json &document) {
  const std::string json = document.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  std::string text;
  for (char c : json)
    text += c == '<' ? "\\u003c" : std::string(1, c);
  return text;
}

/// What the page has no section for, and what would bring it.
std::vector<std::string> absentOf(const ReportSources &sources, const ordered_json &document) {
  std::vector<std::string> absent;
  if (sources.profile.empty())
    absent.emplace_back("measured kernels and actions: --profile FILE, of trainer profile -o FILE");
  if (sources.trainer.empty())
    absent.emplace_back(
        "planned kernels, memory and stages: --trainer FOLDER, the output of trainc");
  else if (!document["program"].contains("schedule"))
    absent.emplace_back("a schedule of stages: the step is in one piece");
  return absent;
}

} // namespace

Report reportOf(const ReportSources &sources) {
  Report report;
  ordered_json document = {{"version", 1}, {"runs", ordered_json::array()}};
  for (const std::string &run : sources.runs) {
    const RunLog log = readRunLog(run);
    if (!log.damaged.empty())
      report.warnings.push_back(log.path + ": warning: " + damageText(log));
    document["runs"].push_back(runReport(run, log));
  }
  if (!sources.trainer.empty())
    document["program"] = programReport(sources.trainer, sources.profile);
  if (!sources.profile.empty())
    document["profile"] = profileReport(sources.profile);
  document["absent"] = absentOf(sources, document);
  const size_t place = kPage.find(kDataGoesHere);
  report.page = std::string(kPage.substr(0, place)) + scriptText(document) +
                std::string(kPage.substr(place + kDataGoesHere.size()));
  return report;
}

} // namespace trainc::inspect
