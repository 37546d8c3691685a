// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/report.h"

#include "runtime/plan/read_plan.h"
#include "tools/inspect/html_page.h"
#include "tools/inspect/program_identity.h"
#include "tools/inspect/program_report.h"
#include "tools/inspect/run_report.h"

namespace trainc::inspect {

using nlohmann::ordered_json;

namespace {

constexpr std::string_view kPage =
#include "tools/inspect/page.inc"
    ;

/// Runs may be of several programs, which are compared. A plan and a profile are those of one.
void checkPrograms(const ReportSources &sources, const plan &program,
                   const ordered_json &document) {
  std::vector<ProgramIdentity> all;
  if (!sources.trainer.empty())
    all.push_back(identityOf(sources.trainer, program.program));
  if (!sources.profile.empty())
    all.push_back(identityOf(sources.profile, document["profile"]));
  const size_t programs = all.size();
  for (size_t i = 0; i < sources.runs.size(); ++i)
    all.push_back(identityOf(sources.runs[i], document["runs"][i]));
  for (size_t i = 0; i < programs; ++i)
    for (size_t j = i + 1; j < all.size(); ++j)
      checkSameProgram(all[i], all[j]);
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
  const plan program = sources.trainer.empty() ? plan() : read_plan(sources.trainer);
  if (!sources.trainer.empty())
    document["program"] = programReport(sources.trainer, program, sources.profile);
  if (!sources.profile.empty())
    document["profile"] = profileReport(sources.profile);
  checkPrograms(sources, program, document);
  document["absent"] = absentOf(sources, document);
  report.page = pageWith(kPage, document);
  return report;
}

} // namespace trainc::inspect
