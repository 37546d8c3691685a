// SPDX-License-Identifier: Apache-2.0
//
// Values of options and what is said of wrong ones (option_reader.h).
#include "passes/options/option_reader.h"
#include "passes/stages/pipeline_plan.h"
#include "runtime/name_pattern.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <utility>

namespace trainc {

namespace {

constexpr int64_t kMostStages = 4096, kMostMicroBatches = 65536; // as of the trainer
constexpr int64_t kMicroBatchesOfStage = 4;                      // unless they are given

struct Unit {
  const char *name;
  double bytes;
};
constexpr Unit kUnits[] = {
    {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"TB", 1e12},
    {"GB", 1e9},     {"MB", 1e6},     {"KB", 1e3},     {"kB", 1e3},     {"B", 1},
};

} // namespace

std::string shortened(llvm::StringRef text) {
  constexpr size_t kMost = 1000;
  return text.size() <= kMost ? text.str() : (text.take_front(kMost) + "...").str();
}

std::optional<int64_t> parseBytes(llvm::StringRef text) {
  text = text.trim();
  double scale = 1;
  for (const Unit &unit : kUnits)
    if (text.consume_back(unit.name)) {
      scale = unit.bytes;
      break;
    }
  double number = 0;
  constexpr double kMost = 0x1p62;
  // Less than a byte would become 0, which means no limit.
  if (text.rtrim().getAsDouble(number) || !(number * scale >= 1) || number * scale > kMost)
    return std::nullopt;
  return static_cast<int64_t>(number * scale);
}

void OptionReader::complain(llvm::StringRef option, const llvm::Twine &value,
                            const llvm::Twine &message, const llvm::Twine &advice) {
  isGood = false;
  report({option.str(), shortened(value.str()), message.str(), advice.str()});
}

int64_t OptionReader::number(llvm::StringRef option, llvm::StringRef text, int64_t most) {
  int64_t number = 0;
  if (!text.getAsInteger(10, number) && number >= 1 && number <= most)
    return number;
  complain(option, text,
           "expects a number from 1 to " + llvm::Twine(most) + ", found '" + shortened(text) + "'",
           spelling.with(option, "4"));
  return 1;
}

int64_t OptionReader::bytesOrZero(llvm::StringRef option, llvm::StringRef text,
                                  llvm::StringRef example) {
  if (text == "0")
    return 0;
  if (std::optional<int64_t> bytes = parseBytes(text))
    return *bytes;
  complain(option, text, "expects a size, found '" + shortened(text) + "'",
           spelling.with(option, example));
  return 0;
}

bool OptionReader::flag(llvm::StringRef option, llvm::StringRef text) {
  const bool isTrue = llvm::is_contained({"", "true", "1"}, text);
  if (!isTrue && !llvm::is_contained({"false", "0"}, text))
    complain(option, text, "expects true or false, found '" + shortened(text) + "'",
             spelling.with(option, "true"));
  return isTrue;
}

/// What PyTorch and others call a precision, as we do; another word as it is.
static llvm::StringRef knownPrecision(llvm::StringRef word) {
  return llvm::StringSwitch<llvm::StringRef>(word)
      .Case("bfloat16", "bf16")
      .Cases("half", "float16", "f16", "fp16")
      .Cases("float", "float32", "fp32", "f32")
      .Cases("double", "float64", "fp64", "f64")
      .Default(word);
}

std::string OptionReader::choice(llvm::StringRef option, llvm::StringRef text,
                                 llvm::ArrayRef<llvm::StringRef> known) {
  if (llvm::is_contained(known, text))
    return text.str();
  complain(option, text,
           "expects one of " + llvm::join(known, ", ") + "; found '" + shortened(text) + "'",
           spelling.with(option, nearestOf(known, knownPrecision(text), known.front())));
  return known.front().str();
}

std::string OptionReader::pattern(llvm::StringRef option, llvm::StringRef text) {
  std::string why;
  if (name_pattern::parse(text, why))
    return text.str();
  complain(option, text, "expects a regular expression, found '" + shortened(text) + "': " + why,
           spelling.with(option, "'.*gelu'"));
  return "";
}

std::vector<std::string> splitNames(llvm::StringRef text) {
  std::vector<std::string> names;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (llvm::StringRef("([{").contains(text[i]))
      ++depth;
    else if (llvm::StringRef(")]}").contains(text[i]))
      depth = std::max(0, depth - 1);
    else if (text[i] == ',' && depth == 0)
      names.push_back(text.slice(std::exchange(begin, i + 1), i).str());
  }
  if (!text.empty())
    names.push_back(text.substr(begin).str());
  return names;
}

StageOptions readStages(const StageTexts &texts, OptionReader &reader) {
  StageOptions found;
  found.stages = reader.number("stages", texts.stages, kMostStages);
  found.microBatches = kMicroBatchesOfStage * found.stages;
  if (!texts.microBatches.empty())
    found.microBatches = reader.number("micro-batches", texts.microBatches, kMostMicroBatches);
  found.cuts = texts.cuts;
  found.schedule = texts.schedule;
  if (planning::scheduleKind(texts.schedule) == planning::ScheduleKind::interleaved)
    found.chunksPerStage =
        reader.number("chunks-per-stage", texts.chunksPerStage, kMostStages / found.stages);
  else if (!texts.chunksPerStage.empty())
    reader.complain("chunks-per-stage", texts.chunksPerStage,
                    "is of " + reader.spelling.with("schedule", "interleaved") + ", not of " +
                        texts.schedule,
                    reader.spelling.with("schedule", "interleaved"));
  return found;
}

static void checkCuts(const StageOptions &options, bool isInterleaved, OptionReader &reader) {
  const OptionSpelling &spelling = reader.spelling;
  if (options.cuts.empty() || int64_t(options.cuts.size()) + 1 == options.chunks())
    return;
  const char *parts = isInterleaved ? " chunks" : " stages";
  reader.complain(
      spelling.cut, llvm::join(options.cuts, ","),
      llvm::Twine(options.cuts.size()) + " cuts make " + llvm::Twine(options.cuts.size() + 1) +
          parts + ", not the " + llvm::Twine(options.chunks()) + " of " + spelling.name("stages") +
          (isInterleaved ? " and " + spelling.name("chunks-per-stage") : ""),
      isInterleaved
          ? (llvm::Twine(options.chunks() - 1) + " times " + spelling.name(spelling.cut)).str()
          : spelling.with("stages", llvm::Twine(options.cuts.size() + 1)));
}

void checkStages(const StageOptions &options, OptionReader &reader) {
  const OptionSpelling &spelling = reader.spelling;
  std::optional<planning::ScheduleKind> kind = planning::scheduleKind(options.schedule);
  checkCuts(options, kind == planning::ScheduleKind::interleaved, reader);
  const std::string enough = std::to_string(kMicroBatchesOfStage * options.stages);
  if (options.microBatches < options.stages)
    reader.complain("micro-batches", llvm::Twine(options.microBatches),
                    llvm::Twine(options.microBatches) + " are fewer than the " +
                        llvm::Twine(options.stages) +
                        " stages, of which some would never work at once",
                    spelling.with("micro-batches", enough));
  planning::Pipeline pipeline;
  pipeline.stages = int(options.stages);
  pipeline.chunksPerStage = int(options.chunksPerStage);
  pipeline.microBatches = int(options.microBatches);
  if (std::string why = kind && reader.good() ? planning::unfit(*kind, pipeline) : ""; !why.empty())
    reader.complain("schedule", options.schedule, why,
                    options.chunksPerStage < 2 ? spelling.with("chunks-per-stage", "2")
                                               : spelling.with("micro-batches", enough));
}

} // namespace trainc
