// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/explorer.h"

#include "runtime/failure.h"
#include "runtime/plan/read_plan.h"
#include "tools/inspect/explored_passes.h"
#include "tools/inspect/explored_program.h"
#include "tools/inspect/html_page.h"
#include "tools/inspect/program_identity.h"
#include "tools/simulate/json_document.h"

#include <filesystem>

namespace trainc::inspect {

using nlohmann::ordered_json;

namespace {

constexpr std::string_view kExplorerPage =
#include "tools/inspect/explorer.inc"
    ;

bool hasPlan(const ExplorerSources &sources) {
  return std::filesystem::exists(sources.folder + "/plan");
}

bool hasSource(const ExplorerSources &sources) {
  return std::filesystem::exists(sources.folder + "/source");
}

/// A folder without plans may be one of dumps itself: of a compilation that stopped before them.
std::vector<std::string> dumpsOf(const ExplorerSources &sources) {
  if (!sources.dumps.empty())
    return dumpsIn(sources.dumps);
  return dumpsIn(sources.folder + (hasPlan(sources) ? "/ir" : ""));
}

void checkFolder(const ExplorerSources &sources) {
  if (!std::filesystem::is_directory(sources.folder))
    throw failure(exit_data, sources.folder + ": is not a folder\n  try: the output folder of "
                                              "trainc, or that of --dump-ir");
  if (!hasPlan(sources) && !sources.profile.empty())
    throw failure(exit_data, sources.folder + ": has no plan, whose steps a profile is about\n"
                                              "  try: the output folder of trainc");
}

void checkPrograms(const ExplorerSources &sources, const planned_program &planned,
                   const std::vector<std::string> &dumps) {
  const ProgramIdentity program = identityOf(sources.folder, planned);
  checkSameProgram(program, identityOfDumps(dumps));
  if (!sources.profile.empty())
    checkSameProgram(program, identityOf(sources.profile, simulate::readDocument(sources.profile)));
}

/// What the page does not have, and what would bring it.
std::vector<std::string> absentOf(const ExplorerSources &sources, const ExploredPasses &passes) {
  std::vector<std::string> absent;
  if (!hasPlan(sources))
    absent.emplace_back("nodes of the model's file, steps and memory: the output folder of trainc, "
                        "compiled without --stop-after");
  if (!hasSource(sources))
    absent.emplace_back("the emitted source: the folder `source` of the output");
  if (sources.profile.empty())
    absent.emplace_back("times of steps: --profile FILE, of trainer profile -o FILE");
  if (!passes.areTextsWhole())
    absent.emplace_back("the text of some operations, for which a page has no room: the dumps "
                        "have it");
  return absent;
}

} // namespace

std::vector<std::string> ExplorerSources::files() const {
  std::vector<std::string> read = dumpsOf(*this);
  for (const char *name : {"plan/plan.json", "plan/source_map.json", "source/step.cpp",
                           "source/kernels.cpp", "source/kernels.cu"})
    read.push_back(folder + "/" + name);
  if (!profile.empty())
    read.push_back(profile);
  return read;
}

std::string explorerPage(const ExplorerSources &sources) {
  checkFolder(sources);
  const std::vector<std::string> files = dumpsOf(sources);
  if (files.empty() && sources.dumps.empty())
    throw failure(exit_data, sources.folder + ": has no dumps of IR to go through\n  try: trainc "
                                              "--dump-ir FOLDER, and --dump-ir FOLDER here too");
  if (files.empty())
    refuseDumps(sources.dumps);
  const plan program = hasPlan(sources) ? read_plan(sources.folder) : plan();
  checkPrograms(sources, program.program, files);
  const ExploredPasses passes(files);
  ordered_json document = {{"version", 1}, {"folder", sources.folder}};
  addNames(passes, document);
  if (hasPlan(sources))
    addProgram(sources.folder, program, sources.profile, passes, document);
  passes.addTo(document);
  document["absent"] = absentOf(sources, passes);
  return pageWith(kExplorerPage, document);
}

} // namespace trainc::inspect
