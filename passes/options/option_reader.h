// SPDX-License-Identifier: Apache-2.0
//
// What options may be, of trainc and of the passes alike: texts go in, values come out, and what is
// wrong is said in the same words, each option written as where it comes from.
#pragma once

#include "passes/options/nearest_name.h"
#include "passes/passes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

inline constexpr llvm::StringRef kPrecisions[] = {"f32", "bf16", "fp16", "f64"};
inline constexpr llvm::StringRef kTargets[] = {"cpu", "cuda"};
inline constexpr llvm::StringRef kRecomputeLevels[] = {"none", "light", "full"};
inline constexpr llvm::StringRef kSchedules[] = {"gpipe", "1f1b", "interleaved", "zb-h1"};

/// How options are written: `--stages 4` or `stages=4`.
struct OptionSpelling {
  const char *dashes, *assignment;
  const char *cut; // the option whose values are nodes after which to cut

  std::string name(llvm::StringRef option) const { return dashes + option.str(); }
  std::string with(llvm::StringRef option, const llvm::Twine &value) const {
    return name(option) + assignment + value.str();
  }
};
inline constexpr OptionSpelling kOfCommand{"--", " ", "cut"}, kOfPass{"", "=", "cuts"};

struct OptionProblem {
  std::string option; // without dashes
  std::string value;
  std::string message, advice; // the advice may be empty
};

class OptionReader {
public:
  /// `good`: nothing was wrong so far; checks of several values together wait for that.
  OptionReader(OptionSpelling spelling, std::function<void(const OptionProblem &)> report,
               bool good = true)
      : spelling(spelling), report(std::move(report)), isGood(good) {}

  bool good() const { return isGood; }
  void complain(llvm::StringRef option, const llvm::Twine &value, const llvm::Twine &message,
                const llvm::Twine &advice);

  // Each gives a harmless value where the text is wrong.
  /// From 1 to `most`.
  int64_t number(llvm::StringRef option, llvm::StringRef text, int64_t most);
  /// A size or 0, such as `example`.
  int64_t bytesOrZero(llvm::StringRef option, llvm::StringRef text, llvm::StringRef example);
  /// Nothing after the option's name means true.
  bool flag(llvm::StringRef option, llvm::StringRef text);
  std::string choice(llvm::StringRef option, llvm::StringRef text,
                     llvm::ArrayRef<llvm::StringRef> known);
  /// A regular expression, alone and where it shall match a whole name.
  std::string pattern(llvm::StringRef option, llvm::StringRef text);

  const OptionSpelling spelling;

private:
  std::function<void(const OptionProblem &)> report;
  bool isGood;
};

/// What a message shows of a text of any length.
std::string shortened(llvm::StringRef text);

/// `2GiB`, `500 MB`, `1073741824`: bytes, with a decimal or binary unit. Nothing where it is none.
std::optional<int64_t> parseBytes(llvm::StringRef text);

/// What says how a step is cut; what is empty is not given.
struct StageTexts {
  std::string stages, chunksPerStage, schedule, microBatches;
  std::vector<std::string> cuts;
};

/// Names between commas, which within brackets belong to a name.
std::vector<std::string> splitNames(llvm::StringRef text);

/// Each value by itself; memory limit and target stay as they are by default.
StageOptions readStages(const StageTexts &texts, OptionReader &reader);

/// Whether the values go together, where each was good by itself.
void checkStages(const StageOptions &options, OptionReader &reader);

} // namespace trainc
