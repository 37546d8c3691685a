// SPDX-License-Identifier: Apache-2.0
//
// trainc-inspect: shows the plans of an output folder. It reads the same text
// files that a person can read, plan/*.txt, and draws the memory plan from them; it draws the
// schedule from plan/stages.json.
#include "compiler/standard_output.h"
#include "compiler/write_file.h"
#include "runtime/failure.h"
#include "tools/simulate/schedule_picture.h"
#include "tools/simulate/stage_plan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace llvm;
using namespace trainc;

namespace {

cl::OptionCategory category("trainc-inspect options");
cl::opt<std::string> folder(cl::Positional, cl::desc("FOLDER"), cl::Required, cl::cat(category));
cl::opt<std::string> view(cl::Positional,
                          cl::desc("[summary|memory|recompute|schedule|kernels|steps|parameters]"),
                          cl::init("summary"), cl::cat(category));
cl::opt<std::string>
    svg("svg", cl::value_desc("FILE"), cl::cat(category),
        cl::desc("draw the activations arena over the steps of forward and backward; with the view "
                 "schedule what each stage does when"));

constexpr size_t kShown = 12; // lines of a summary's lists

struct Tensor {
  std::string arena, name;
  int64_t offset, bytes;
  int first, last;
  bool atPeak;
};

struct Entry {
  std::string title; // "forward_backward: 80 steps, ..."
  std::vector<Tensor> tensors;
};

struct MemoryPlan {
  std::vector<std::string> arenas; // the table's lines
  std::vector<Entry> entries;
};

std::optional<std::string> readPlan(StringRef name) {
  std::string path = folder + "/plan/" + name.str() + ".txt";
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer) {
    errs() << path << ": " << buffer.getError().message()
           << "\n  try: the output folder of trainc\n";
    return std::nullopt;
  }
  return (*buffer)->getBuffer().str();
}

/// A tensor's line: arena, offset, bytes, first and last step, mark of the peak, name.
std::optional<Tensor> parseTensor(StringRef line) {
  Tensor tensor;
  auto word = [&] {
    auto [head, tail] = line.ltrim().split(' ');
    line = tail;
    return head;
  };
  tensor.arena = word().str();
  if (word().getAsInteger(10, tensor.offset) || word().getAsInteger(10, tensor.bytes) ||
      word().getAsInteger(10, tensor.first) || word().getAsInteger(10, tensor.last))
    return std::nullopt; // the heading
  int64_t end;
  if (tensor.offset < 0 || tensor.bytes < 0 || AddOverflow(tensor.offset, tensor.bytes, end))
    return std::nullopt; // of a damaged plan
  StringRef rest = line.ltrim();
  tensor.atPeak = rest.consume_front("* ");
  tensor.name = rest.str();
  return tensor;
}

MemoryPlan parseMemory(StringRef text) {
  MemoryPlan plan;
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    if (!line.starts_with(" ") && line.contains(": ")) {
      plan.entries.push_back({line.str(), {}});
    } else if (plan.entries.empty()) {
      plan.arenas.push_back(line.str());
    } else if (std::optional<Tensor> tensor = parseTensor(line)) {
      plan.entries.back().tensors.push_back(*tensor);
    }
  }
  return plan;
}

std::string readable(int64_t bytes) {
  static const char *units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1000 && unit < 4; ++unit)
    value /= 1000;
  std::string text;
  raw_string_ostream(text) << format(unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

/// Tensors alive at the peak of an entry, largest first.
void printPeak(const Entry &entry, size_t most) {
  std::vector<Tensor> alive;
  for (const Tensor &tensor : entry.tensors)
    if (tensor.atPeak)
      alive.push_back(tensor);
  if (alive.empty())
    return;
  std::stable_sort(alive.begin(), alive.end(),
                   [](const Tensor &a, const Tensor &b) { return a.bytes > b.bytes; });
  outs() << "\n" << entry.title << "\n";
  for (size_t i = 0; i < std::min(alive.size(), most); ++i)
    outs() << format("  %10s  steps %4d to %4d  ", readable(alive[i].bytes).c_str(), alive[i].first,
                     alive[i].last)
           << alive[i].name << "\n";
  if (alive.size() > most)
    outs() << "  and " << alive.size() - most << " more\n";
}

bool printMemory(size_t most) {
  std::optional<std::string> text = readPlan("memory");
  if (!text)
    return false;
  MemoryPlan plan = parseMemory(*text);
  for (const std::string &line : plan.arenas)
    outs() << line << "\n";
  for (const Entry &entry : plan.entries)
    printPeak(entry, most);
  return true;
}

/// The first `most` lines of a plan.
bool printLines(StringRef name, size_t most) {
  std::optional<std::string> text = readPlan(name);
  if (!text)
    return false;
  SmallVector<StringRef> lines;
  StringRef(*text).split(lines, '\n');
  while (!lines.empty() && lines.back().empty())
    lines.pop_back();
  for (size_t i = 0; i < std::min(lines.size(), most); ++i)
    outs() << lines[i] << "\n";
  if (lines.size() > most)
    outs() << "and " << lines.size() - most << " more; trainc-inspect " << folder << " " << name
           << "\n";
  return true;
}

bool printEntries() {
  std::optional<std::string> text = readPlan("steps");
  if (!text)
    return false;
  SmallVector<StringRef> lines;
  StringRef(*text).split(lines, '\n');
  outs() << "entry functions\n";
  for (StringRef line : lines)
    if (!line.empty() && !line.starts_with(" "))
      outs() << "  " << line << "\n";
  return true;
}

bool printSummary() {
  if (!printMemory(kShown))
    return false;
  outs() << "\n";
  if (!printEntries())
    return false;
  outs() << "\n";
  return printLines("kernels", kShown);
}

std::string escapeXml(StringRef text) {
  std::string escaped;
  raw_string_ostream stream(escaped);
  printHTMLEscaped(text, stream);
  return escaped;
}

/// Each tensor a box from its first to its last step, at its offset: the arena as it fills and
/// empties.
void drawEntry(raw_ostream &out, const Entry &entry) {
  constexpr double width = 1200, height = 600, margin = 40;
  int last = 0;
  int64_t top = 1;
  for (const Tensor &tensor : entry.tensors)
    if (tensor.arena == "activations") {
      last = std::max(last, tensor.last);
      top = std::max(top, tensor.offset + tensor.bytes);
    }
  const double steps = last + 1.0;
  out << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << width + 2 * margin << " "
      << height + 2 * margin << "' font-family='sans-serif' font-size='11'>\n"
      << "<text x='" << margin << "' y='20' font-size='14'>" << escapeXml(entry.title)
      << "; arena of " << readable(top) << "</text>\n";
  for (const Tensor &tensor : entry.tensors) {
    if (tensor.arena != "activations")
      continue;
    double x = margin + width * tensor.first / steps;
    double w = std::max(1.0, width * (tensor.last + 1.0 - tensor.first) / steps);
    double h = height * double(tensor.bytes) / double(top);
    double y = margin + height - height * double(tensor.offset) / double(top) - h;
    const char *color = tensor.atPeak ? "#d1603d" : "#5b84b1";
    out << format("<rect x='%.1f' y='%.1f' width='%.1f' height='%.2f' fill='%s' stroke='white' "
                  "stroke-width='0.4'>",
                  x, y, w, h, color)
        << "<title>" << escapeXml(tensor.name) << ": " << readable(tensor.bytes) << ", steps "
        << tensor.first << " to " << tensor.last << "</title></rect>\n";
    if (h > 12 && w > 60)
      out << format("<text x='%.1f' y='%.1f' fill='white'>", x + 3, y + h / 2 + 4)
          << escapeXml(StringRef(tensor.name).take_front(size_t(w / 7))) << "</text>\n";
  }
  out << "<text x='" << margin << "' y='" << height + 2 * margin - 12
      << "'>step 0</text><text text-anchor='end' x='" << margin + width << "' y='"
      << height + 2 * margin - 12 << "'>step " << last
      << "; tensors alive at the peak are red</text>\n</svg>\n";
}

/// Says that the picture would take the place of what is read.
bool isPlan(StringRef name) {
  if (!sys::fs::equivalent(svg, folder + "/plan/" + name))
    return false;
  errs() << svg << ": is read by this command\n  try: --svg with another file\n";
  return true;
}

/// By what the compiler predicts of the stages; messages and updates take no time.
bool drawSchedule() {
  simulate::StagePlan plan;
  try {
    plan = simulate::readStagePlan(folder);
  } catch (const failure &error) {
    errs() << error.message << "\n";
    return false;
  }
  if (isPlan("stages.json") || isPlan("kernels.json"))
    return false;
  planning::StepCosts costs;
  for (const simulate::ChunkPlan &chunk : plan.chunks) {
    planning::ChunkSeconds seconds;
    seconds.forward = chunk.forwardTime;
    seconds.inputGradient = chunk.backwardTime * (1 - chunk.weightGradientShare);
    seconds.weightGradient = chunk.backwardTime * chunk.weightGradientShare;
    costs.chunks.push_back(seconds);
  }
  const planning::Pipeline &pipeline = plan.schedule.pipeline;
  const std::string title = std::string(planning::nameOf(plan.schedule.kind)) + ", " +
                            std::to_string(pipeline.stages) + " stages, " +
                            std::to_string(pipeline.microBatches) + " micro-batches";
  const planning::StepTimes times = planning::simulateStep(plan.schedule, 1, costs);
  std::error_code error =
      writeFile(svg, simulate::schedulePicture(plan.schedule, times, title, "bytes of traffic"));
  if (error)
    errs() << svg << ": " << error.message() << "\n";
  return !error;
}

bool draw() {
  if (view == "schedule")
    return drawSchedule();
  std::optional<std::string> text = readPlan("memory");
  if (!text)
    return false;
  MemoryPlan plan = parseMemory(*text);
  if (isPlan("memory.txt"))
    return false;
  std::error_code error;
  raw_fd_ostream out(svg, error);
  if (error || plan.entries.empty()) {
    errs() << svg << ": " << (error ? error.message() : "the plan has no entry function") << "\n";
    return false;
  }
  drawEntry(out, plan.entries.front());
  out.close();
  error = out.error();
  out.clear_error();
  if (error)
    errs() << svg << ": " << error.message() << "\n";
  return !error;
}

} // namespace

int main(int argc, char **argv) {
  trainc::watchStandardOutput("trainc-inspect");
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "trainc-inspect explains the output folder of trainc.\n\n"
      "  trainc-inspect out            arenas, the tensors alive at the peak, entry functions, "
      "kernels\n"
      "  trainc-inspect out memory     all tensors alive at the peak of each entry function\n"
      "  trainc-inspect out recompute  what the backward pass computes again, and what is kept for "
      "it\n"
      "  trainc-inspect out schedule   the stages of a step, what they keep and send, and when "
      "each is "
      "busy\n"
      "  trainc-inspect out kernels    every kernel with flops, bytes and launches\n"
      "  trainc-inspect out steps      the entry functions step by step\n"
      "  trainc-inspect out --svg memory.svg    a picture of the activations arena\n"
      "  trainc-inspect out schedule --svg schedule.svg    a picture of the schedule\n");
  const std::map<std::string, bool (*)()> views = {
      {"summary", printSummary},
      {"memory", [] { return printMemory(SIZE_MAX); }},
      {"recompute", [] { return printLines("recompute", SIZE_MAX); }},
      {"schedule", [] { return printLines("stages", SIZE_MAX); }},
      {"kernels", [] { return printLines("kernels", SIZE_MAX); }},
      {"steps", [] { return printLines("steps", SIZE_MAX); }},
      {"parameters", [] { return printLines("parameters", SIZE_MAX); }},
  };
  auto chosen = views.find(view);
  if (chosen == views.end()) {
    errs() << "trainc-inspect: there is no view '" << view
           << "'\n  try: summary, memory, recompute, schedule, kernels, steps or parameters\n";
    return 2;
  }
  bool good = svg.empty() ? chosen->second() : draw();
  return good ? 0 : 3;
}
