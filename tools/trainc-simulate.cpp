// SPDX-License-Identifier: Apache-2.0
//
// trainc-simulate: what a step takes on a cluster that is not there. Executes the lists of actions
// that trainc has emitted, one clock for each rank (passes/planning/schedule_simulation.h).
#include "compiler/standard_output.h"
#include "runtime/failure.h"
#include "runtime/files/output_file.h"
#include "runtime/plan/read_plan.h"
#include "tools/simulate/schedule_picture.h"
#include "tools/simulate/step_costs.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

using namespace llvm;
using namespace trainc;
using namespace trainc::simulate;

namespace {

cl::OptionCategory category("trainc-simulate options");
cl::opt<std::string> folder(cl::Positional, cl::desc("FOLDER"), cl::cat(category));
cl::opt<int> stageCount("stages", cl::value_desc("N"), cl::init(0), cl::cat(category),
                        cl::desc("run the stages of FOLDER on N; fewer than it has take several "
                                 "each, with --schedule interleaved"));
cl::opt<int> replicaCount("replicas", cl::value_desc("N"), cl::init(1), cl::cat(category),
                          cl::desc("replicas of all stages (default 1)"));
cl::opt<std::string> scheduleName("schedule", cl::value_desc("KIND"), cl::cat(category),
                                  cl::desc("gpipe, 1f1b, interleaved or zb-h1 instead of FOLDER's, "
                                           "as trainc would list its actions"));
cl::opt<int> microBatchCount("micro-batches", cl::value_desc("N"), cl::init(0), cl::cat(category),
                             cl::desc("of a step and replica, instead of FOLDER's"));
cl::opt<std::string> networkName("network", cl::value_desc("NAME"), cl::cat(category),
                                 cl::desc("links within a host and between hosts, or a JSON file "
                                          "(default nvlink+400G, without --profile)"));
cl::opt<int> ranksPerHost("ranks-per-host", cl::value_desc("N"), cl::init(0), cl::cat(category),
                          cl::desc("instead of the network's"));
cl::opt<std::string> deviceName("device", cl::value_desc("NAME"), cl::init("h100"),
                                cl::cat(category),
                                cl::desc("a100, h100, h200 or a JSON file, for the roofline "
                                         "(default h100)"));
cl::opt<std::string> profileFile("profile", cl::value_desc("FILE"), cl::cat(category),
                                 cl::desc("what `trainer profile -o FILE` has measured, instead of "
                                          "the roofline; without --network for messages and "
                                          "exchanges too"));
cl::opt<std::string> shard("shard", cl::value_desc("WHAT"), cl::cat(category),
                           cl::desc("what ranks of a host share, of a program in one piece: none "
                                    "or optimizer, as the trainer's option"));
cl::opt<std::string> svg("svg", cl::value_desc("FILE"), cl::cat(category),
                         cl::desc("draw the step of the first replica"));
cl::opt<bool> asJson("json", cl::cat(category), cl::desc("print the result as JSON"));

constexpr int kMost = 1 << 20; // stages, replicas, micro-batches

std::string counted(int64_t count, const char *word) {
  const bool hisses = std::string(word).back() == 'h';
  return std::to_string(count) + " " + word + (count == 1 ? "" : hisses ? "es" : "s");
}

struct StageResult {
  double computing = 0, exposed = 0; // seconds, means over replicas
  int slots = 0;
  rank_memory memory;
};

class Simulation {
public:
  void run() {
    checkNumbers();
    checkPicture();
    plan = readStagePlan(folder);
    choose();
    chooseSharing();
    chooseSpeeds();
    const planning::StepCosts costs = costsOf(plan, schedule, replicaCount, sources);
    times = planning::simulateStep(schedule, replicaCount, costs);
    const planning::StepTimes silent =
        planning::simulateStep(schedule, 1, withoutCommunication(costs));
    communication = std::max(0.0, times.seconds - silent.seconds);
    const int stages = schedule.pipeline.stages;
    const std::vector<rank_memory> memory =
        memory_of_ranks(planning::needsOf(plan.stages(), schedule),
                        {replicaCount, ranksOnHost(sources, stages * replicaCount),
                         schedule.pipeline.microBatches, sources.shared});
    for (int stage = 0; stage < stages; ++stage)
      results.push_back(resultOf(stage, memory[size_t(stage)]));
    if (asJson)
      printJson();
    else
      print();
    if (!svg.empty())
      replace_file(svg, schedulePicture(schedule, times, layoutText(), TimeAxis::seconds));
  }

private:
  static void checkNumbers() {
    auto check = [](const char *name, const cl::opt<int> &option, int least) {
      if (option.getNumOccurrences() && (option < least || option > kMost))
        throw failure(exit_usage, std::string("option --") + name + ": " + std::to_string(option) +
                                      " is not from " + std::to_string(least) + " to " +
                                      std::to_string(kMost));
    };
    check("stages", stageCount, 1);
    check("replicas", replicaCount, 1);
    check("micro-batches", microBatchCount, 1);
    check("ranks-per-host", ranksPerHost, 1);
  }

  static void checkPicture() {
    if (!svg.empty())
      check_output_path(svg, {plan_path(folder), profileFile, networkName, deviceName},
                        read_by_command, "--svg");
  }

  static planning::ScheduleKind kindOf(const std::string &name) {
    if (std::optional<planning::ScheduleKind> kind = planning::scheduleKind(name))
      return *kind;
    throw failure(exit_usage, "option --schedule: '" + name +
                                  "' is unknown\n  try: gpipe, 1f1b, interleaved or zb-h1");
  }

  /// The lists of the folder, or others of the same chunks.
  void choose() {
    const planning::Pipeline &own = plan.schedule.pipeline;
    const int stages = stageCount > 0 ? stageCount : own.stages,
              microBatches = microBatchCount > 0 ? microBatchCount : own.microBatches;
    planning::ScheduleKind kind = plan.schedule.kind;
    if (!scheduleName.empty())
      kind = kindOf(scheduleName);
    else if (stages != own.stages && stages < int(plan.chunks().size()))
      kind = planning::ScheduleKind::interleaved;
    isEmitted =
        stages == own.stages && microBatches == own.microBatches && kind == plan.schedule.kind;
    if (int64_t ranks = int64_t(stages) * replicaCount; ranks > kMost)
      throw failure(exit_usage, "option --replicas: " + counted(ranks, "rank") + " are more than " +
                                    std::to_string(kMost));
    schedule = isEmitted ? plan.schedule : scheduleFor(plan, stages, kind, microBatches);
  }

  /// As the trainer's --shard.
  void chooseSharing() {
    sources.shared = plan.stages().shared;
    if (!shard.getNumOccurrences())
      return;
    auto refuse = [](const std::string &why, const char *advice) {
      throw failure(exit_usage, "option --shard: " + why + "\n  try: " + advice);
    };
    const bool asksForState = shard == "optimizer";
    if (!asksForState && shard != "none" && shard != "gradients")
      refuse("'" + shard + "' is unknown", "none or optimizer");
    if (shard == "gradients" && plan.stages().shared != sharing::gradients)
      refuse(folder + " was not compiled for it", "trainc --shard gradients");
    if (shard != "gradients" && plan.stages().shared == sharing::gradients)
      refuse(folder + " was compiled for gradients of which no rank keeps all",
             "the command without it");
    if (plan.stages().is_cut() && plan.stages().shared == sharing::state && !asksForState)
      refuse("ranks of stages that share memory have the optimizer's state once always",
             "the command without it");
    if (asksForState && !plan.stages().updates_in_parts)
      refuse("the update of " + folder + " cannot be shared out", "--shard none");
    if (asksForState)
      sources.shared = sharing::state;
  }

  void chooseSpeeds() {
    if (!profileFile.empty()) {
      if (deviceName.getNumOccurrences())
        throw failure(exit_usage, "option --device: --profile has the seconds\n  try: one of both");
      profile = readProfile(profileFile, plan);
      sources.profile = &*profile;
      const bool fits =
          schedule.pipeline.stages == profile->stages && replicaCount == profile->replicas;
      if (networkName.empty() && !fits)
        throw failure(exit_usage,
                      "option --network: " + profileFile + " has measured messages of " +
                          counted(profile->stages, "stage") + " x " +
                          counted(profile->replicas, "replica") +
                          " alone\n  try: --network nvlink+400G, shared-memory or a JSON file");
    } else {
      sources.device = deviceOf(deviceName);
    }
    if (profileFile.empty() || !networkName.empty()) {
      network = networkOf(networkName.empty() ? "nvlink+400G" : networkName.getValue());
      if (ranksPerHost > 0)
        network->ranksPerHost = ranksPerHost;
      sources.network = &*network;
    } else if (ranksPerHost > 0) {
      throw failure(exit_usage, "option --ranks-per-host: no network is asked for\n  try: "
                                "--network NAME");
    }
  }

  StageResult resultOf(int stage, const rank_memory &memory) const {
    StageResult result;
    result.memory = memory;
    const int stages = schedule.pipeline.stages;
    for (int replica = 0; replica < replicaCount; ++replica) {
      const size_t rank = size_t(replica) * size_t(stages) + size_t(stage);
      result.computing += times.computing[rank] / replicaCount;
      result.exposed += times.exposed[rank] / replicaCount;
    }
    for (int number = stage; number < schedule.pipeline.chunks(); number += stages)
      result.slots += schedule.stashSlots[size_t(number)];
    return result;
  }

  std::string layoutText() const {
    const int stages = schedule.pipeline.stages;
    std::string text = counted(stages, "stage") + " x " + counted(replicaCount, "replica") + ": " +
                       counted(int64_t(stages) * replicaCount, "rank");
    return text + "; " + planning::nameOf(schedule.kind) + ", " +
           counted(schedule.pipeline.microBatches, "micro-batch") + " a step and replica";
  }

  std::string sourceText() const {
    std::string text;
    raw_string_ostream out(text);
    if (profile)
      out << "seconds measured: " << profileFile;
    else
      out << "seconds: roofline of " << sources.device.name
          << format(", %.4g TFLOP/s, %.4g GB/s, %.4g us a kernel",
                    sources.device.flopsPerSecond * 1e-12, sources.device.bytesPerSecond * 1e-9,
                    sources.device.secondsPerKernel * 1e6);
    if (!network) {
      out << "; messages measured too";
      return text;
    }
    auto link = [&](const Link &of) {
      out << of.name << format(" (%.4g GB/s, %.4g us)", of.bytesPerSecond * 1e-9, of.latency * 1e6);
    };
    out << "\nlinks: ";
    const bool severalHosts = network->ranksPerHost < schedule.pipeline.stages * replicaCount;
    if (network->ranksPerHost > 1) {
      link(network->within);
      if (severalHosts)
        out << " within a host of " << network->ranksPerHost << " ranks, ";
    }
    if (severalHosts) {
      link(network->between);
      out << " between hosts";
    }
    return text;
  }

  void print() const {
    raw_ostream &out = outs();
    out << layoutText() << "\n" << sourceText() << "\n";
    out << (isEmitted ? "lists of actions: as emitted\n"
                      : "lists of actions: what trainc would emit\n");
    auto row = [&](const char *name, double seconds) {
      out << format("%-24s %14.9f s", name, seconds);
    };
    out << "\n";
    row("step", times.seconds);
    if (profile && !network && isEmitted)
      out << format("  %.3f of the measured %.9f s", times.seconds / profile->seconds,
                    profile->seconds);
    out << "\n";
    row("bubble", times.bubble * times.seconds);
    out << format("  %.2f %% of the ranks' time\n", 100 * times.bubble);
    row("exposed communication", communication);
    out << format("  %.2f %% of the step\n", 100 * share(communication));
    printStages();
  }

  double share(double seconds) const { return times.seconds > 0 ? seconds / times.seconds : 0; }

  void printStages() const {
    raw_ostream &out = outs();
    out << "\nof a rank                seconds                                                     "
           "      megabytes\nstage      computing        idle  waiting for an exchange  slots   "
           "parameters  gradients  accumulators       state  activations       stash    messages  "
           "   workspace   constants    together\n";
    for (auto [number, stage] : enumerate(results)) {
      const rank_memory &memory = stage.memory;
      auto megabytes = [](int64_t bytes) { return double(bytes) * 1e-6; };
      out << format("%5d %14.9f %9.2f %% %24.9f %6d", int(number), stage.computing,
                    100 * (1 - share(stage.computing)), stage.exposed, stage.slots)
          << format(" %12.3f %10.3f %13.3f %11.3f %12.3f", megabytes(memory.parameters),
                    megabytes(memory.gradients), megabytes(memory.accumulators),
                    megabytes(memory.state), megabytes(memory.activations))
          << format(" %11.3f %11.3f %13.3f %11.3f %11.3f\n", megabytes(memory.stash),
                    megabytes(memory.messages), megabytes(memory.workspace),
                    megabytes(memory.constants), megabytes(memory.bytes()));
    }
  }

  void printJson() const {
    nlohmann::ordered_json stages = nlohmann::ordered_json::array();
    for (auto [number, stage] : enumerate(results))
      stages.push_back({{"stage", number},
                        {"computing", stage.computing},
                        {"exposed", stage.exposed},
                        {"slots", stage.slots},
                        {"parameter_bytes", stage.memory.parameters},
                        {"gradient_bytes", stage.memory.gradients},
                        {"accumulator_bytes", stage.memory.accumulators},
                        {"state_bytes", stage.memory.state},
                        {"activation_bytes", stage.memory.activations},
                        {"stash_bytes", stage.memory.stash},
                        {"message_bytes", stage.memory.messages},
                        {"workspace_bytes", stage.memory.workspace},
                        {"constant_bytes", stage.memory.constants},
                        {"bytes", stage.memory.bytes()}});
    const nlohmann::ordered_json document = {{"version", 1},
                                             {"schedule", planning::nameOf(schedule.kind)},
                                             {"stages", schedule.pipeline.stages},
                                             {"replicas", replicaCount.getValue()},
                                             {"micro_batches", schedule.pipeline.microBatches},
                                             {"emitted", isEmitted},
                                             {"seconds", times.seconds},
                                             {"bubble", times.bubble},
                                             {"exposed_communication", communication},
                                             {"of_ranks", std::move(stages)}};
    outs() << document.dump(2) << "\n";
  }

  StagePlan plan;
  planning::Schedule schedule;
  bool isEmitted = true;
  std::optional<Profile> profile;
  std::optional<Network> network;
  CostSources sources;
  planning::StepTimes times;
  double communication = 0; // seconds that the step is longer for
  std::vector<StageResult> results;
};

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  watchStandardOutput("trainc-simulate");
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "trainc-simulate says what a step of an output folder of trainc takes on a cluster: it "
          "executes\nthe lists of actions that the trainer has.\n\n"
          "  trainc-simulate out --replicas 128 --network nvlink+400G   roofline of an H100\n"
          "  trainc-simulate out --profile profile.json                 seconds of trainer "
          "profile\n"
          "  trainc-simulate out --schedule zb-h1 --svg step.svg        another schedule, a "
          "picture\n\n"
          "Exit status: 0; 2 the command line is wrong; 3 a file cannot be read or does not fit; 5 "
          "the result\ncannot be written; 6 too little memory\n",
          &errs()))
    return exit_usage;
  try {
    if (folder.empty())
      throw failure(exit_usage, "usage: trainc-simulate FOLDER [options]\n"
                                "trainc-simulate: no folder given\n"
                                "  try: trainc-simulate out, or trainc-simulate --help");
    Simulation().run();
  } catch (const std::exception &error) {
    const failure problem = as_failure(error);
    outs().flush();
    errs() << problem.message << "\n";
    return problem.code;
  }
  return 0;
}
