// SPDX-License-Identifier: Apache-2.0
//
// trainc-simulate: what a step takes on a cluster that is not there. Executes the lists of actions
// that trainc has emitted, one clock for each rank (passes/planning/schedule_simulation.h).
#include "compiler/standard_output.h"
#include "runtime/files/output_file.h"
#include "runtime/plan/read_plan.h"
#include "tools/run_tool.h"
#include "tools/simulate/schedule_picture.h"
#include "tools/simulate/step_costs.h"

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
using namespace trainc::tools;

namespace {

constexpr int kMost = 1 << 20; // stages, replicas, micro-batches

struct SimulateOptions : ToolOptions {
  std::optional<int64_t> stages, microBatches, ranksPerHost;
  int64_t replicas = 1;
  std::string schedule, shard, network, device = "h100", profile, svg;
  bool json = false;
};

std::vector<option_row> simulateRows() {
  using O = SimulateOptions;
  return {
      toolOption("stages", &O::stages, "N",
                 "run the stages of FOLDER on N; fewer than it has take several each, with "
                 "--schedule interleaved")
          .between(1, kMost),
      toolOption("replicas", &O::replicas, "N", "replicas of all stages").between(1, kMost),
      toolOption("schedule", &O::schedule, "gpipe|1f1b|interleaved|zb-h1",
                 "instead of FOLDER's, as trainc would list its actions"),
      toolOption("micro-batches", &O::microBatches, "N",
                 "of a step and replica, instead of FOLDER's")
          .between(1, kMost),
      toolOption("network", &O::network, "NAME",
                 "links within a host and between hosts, or a JSON file (default nvlink+400G, "
                 "without --profile)"),
      toolOption("ranks-per-host", &O::ranksPerHost, "N", "instead of the network's")
          .between(1, kMost)
          .idle("profile !network", "no network is asked for", "--network NAME"),
      toolOption("device", &O::device, "NAME", "a100, h100, h200 or a JSON file, for the roofline")
          .idle("profile", "--profile has the seconds", "one of both"),
      toolOption("profile", &O::profile, "FILE",
                 "what `trainer profile -o FILE` has measured, instead of the roofline; without "
                 "--network for messages and exchanges too"),
      toolOption("shard", &O::shard, "none|optimizer|gradients",
                 "what ranks of a host share, of a program in one piece, as the trainer's option"),
      toolOption("svg", &O::svg, "FILE", "draw the step of the first replica"),
      toolOption("json", &O::json, "", "print the result as JSON")};
}

struct StageResult {
  double computing = 0, exposed = 0; // seconds, means over replicas
  int slots = 0;
  rank_memory memory;
};

class Simulation {
public:
  explicit Simulation(const SimulateOptions &options)
      : options(options), folder(options.word(0)), replicaCount(int(options.replicas)) {}

  void run() {
    if (!options.svg.empty())
      check_output_path(options.svg,
                        {plan_path(folder), options.profile, options.network, options.device},
                        read_by_command, "--svg");
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
    if (options.json)
      printJson();
    else
      print();
    outs().flush(); // before a message about the picture
    if (!options.svg.empty())
      replace_file(options.svg, schedulePicture(schedule, times, layoutText(), TimeAxis::seconds));
  }

private:
  /// The lists of the folder, or others of the same chunks.
  void choose() {
    const planning::Pipeline &own = plan.schedule.pipeline;
    const int stages = int(options.stages.value_or(own.stages)),
              microBatches = int(options.microBatches.value_or(own.microBatches));
    planning::ScheduleKind kind = plan.schedule.kind;
    if (!options.schedule.empty())
      kind = *planning::scheduleKind(options.schedule);
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
    const sharing own = plan.stages().shared;
    sources.shared = own;
    if (options.shard.empty())
      return;
    auto refuse = [](const std::string &why, const char *advice) {
      throw failure(exit_usage, "option --shard: " + why + "\n  try: " + advice);
    };
    const bool asksForState = options.shard == "optimizer",
               asksForGradients = options.shard == "gradients";
    if (asksForGradients && own != sharing::gradients)
      refuse(folder + " was not compiled for it", "trainc --shard gradients");
    if (!asksForGradients && own == sharing::gradients)
      refuse(folder + " was compiled for gradients of which no rank keeps all",
             "the command without it");
    if (plan.stages().is_cut() && own == sharing::state && !asksForState)
      refuse("ranks of stages that share memory have the optimizer's state once always",
             "the command without it");
    if (asksForState && !plan.stages().updates_in_parts)
      refuse("the update of " + folder + " cannot be shared out", "--shard none");
    if (asksForState)
      sources.shared = sharing::state;
  }

  void chooseSpeeds() {
    const std::string &name = options.network;
    if (!options.profile.empty()) {
      profile = readProfile(options.profile, plan);
      sources.profile = &*profile;
      const bool fits =
          schedule.pipeline.stages == profile->stages && replicaCount == profile->replicas;
      if (name.empty() && !fits)
        throw failure(exit_usage,
                      "option --network: " + options.profile + " has measured messages of " +
                          counted(profile->stages, "stage") + " x " +
                          counted(profile->replicas, "replica") +
                          " alone\n  try: --network nvlink+400G, shared-memory or a JSON file");
    } else {
      sources.device = deviceOf(options.device);
    }
    if (options.profile.empty() || !name.empty()) {
      network = networkOf(name.empty() ? "nvlink+400G" : name);
      network->ranksPerHost = int(options.ranksPerHost.value_or(network->ranksPerHost));
      sources.network = &*network;
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
      out << "seconds measured: " << options.profile;
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
                                             {"replicas", replicaCount},
                                             {"micro_batches", schedule.pipeline.microBatches},
                                             {"emitted", isEmitted},
                                             {"seconds", times.seconds},
                                             {"bubble", times.bubble},
                                             {"exposed_communication", communication},
                                             {"of_ranks", std::move(stages)}};
    outs() << document.dump(2) << "\n";
  }

  const SimulateOptions &options;
  const std::string folder;
  const int replicaCount;
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

constexpr char kPage[] = R"(usage: trainc-simulate FOLDER [options]

trainc-simulate says what a step of an output folder of trainc takes on a cluster: it executes
the lists of actions that the trainer has.

  trainc-simulate out --replicas 128 --network nvlink+400G   roofline of an H100
  trainc-simulate out --profile profile.json                 seconds of trainer profile
  trainc-simulate out --schedule zb-h1 --svg step.svg        another schedule, a picture

Exit status: 0; 2 the command line is wrong; 3 a file cannot be read or does not fit; 5 the result
cannot be written; 6 too little memory
)";

int runSimulation(const SimulateOptions &options) {
  Simulation(options).run();
  return exit_success;
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  watchStandardOutput("trainc-simulate");
  return runTool(argc, argv, {"trainc-simulate", kPage, simulateRows(), "folder"}, runSimulation);
}
