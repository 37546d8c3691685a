// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/emitted_source.h"

#include "tools/inspect/plan_text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <filesystem>
#include <sstream>

using llvm::isAlnum;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

namespace trainc::inspect {

namespace {

/// The lines of `text` with their numbers.
template <typename Call> void eachLine(const std::string &text, Call call) {
  std::istringstream stream(text);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number)
    call(line, number);
}

/// kernels.cpp or kernels.cu.
std::string kernelsOf(const std::string &folder) {
  const std::string cuda = folder + "/source/kernels.cu";
  return std::filesystem::exists(cuda) ? cuda : folder + "/source/kernels.cpp";
}

StringRef identifierAt(StringRef text) {
  return text.take_while([](char c) { return isAlnum(c) || c == '_'; });
}

/// What stands after `word` in the line; empty where that is not in it.
std::string identifierBehind(StringRef line, StringRef word) {
  const size_t at = line.find(word);
  return at == StringRef::npos ? "" : identifierAt(line.drop_front(at + word.size())).str();
}

std::string placeKey(StringRef entry, StringRef arena, int64_t offset, StringRef steps) {
  return (entry + " " + arena + " " + Twine(offset) + " " + steps).str();
}

std::string stepsKey(int first, int last) {
  return std::to_string(first) + "-" + std::to_string(last);
}

/// The key of what a comment says: `, steps 0 to 136, h.0.ln_1`, `, step 3`, `, to step 46`.
std::string keyOfSteps(StringRef comment) {
  int first = 0, last = 0;
  if (comment.consume_front(", to step "))
    return comment.consumeInteger(10, last) ? "" : stepsKey(0, last);
  if (comment.consume_front(", step "))
    return comment.consumeInteger(10, last) ? "" : stepsKey(last, last);
  if (!comment.consume_front(", steps ") || comment.consumeInteger(10, first) ||
      !comment.consume_front(" to ") || comment.consumeInteger(10, last))
    return "";
  return stepsKey(first, last);
}

/// Of a step, and no mark or comment between steps.
bool isCall(StringRef line) {
  line = line.ltrim();
  return !line.empty() && !line.starts_with("//") && !line.starts_with("m.");
}

const char *const kShared = "shared"; // the namespace of memory.h that all entry functions use

} // namespace

EmittedSource::EmittedSource(const std::string &folder)
    : stepFile(folder + "/source/step.cpp"), kernelFile(kernelsOf(folder)),
      memoryFile(folder + "/source/memory.h") {
  readSteps(readText(stepFile));
  readKernels(readText(kernelFile));
  readPlaces(readText(memoryFile));
}

/// An entry function is several, each with some of its steps: `forward_backward_1`.
void EmittedSource::readSteps(const std::string &text) {
  std::string entry;
  int number = -1;
  Step *open = nullptr; // whose call goes on
  eachLine(text, [&](StringRef line, int lineNumber) {
    if (!line.starts_with("   ")) // the call's next line stands deeper
      open = open && line.starts_with("  ") && isCall(line) ? open : nullptr;
    if (open)
      open->lines.last = lineNumber;
    if (line.consume_front("static void ")) {
      entry = identifierAt(line).rsplit('_').first.str();
      number = -1;
    } else if (line.consume_front("  m.step(")) {
      if (line.consumeInteger(10, number))
        number = -1;
      else
        (open = &steps[{entry, number}])->lines = {lineNumber, lineNumber};
    } else if (number >= 0) {
      addToStep(entry, number, line);
    }
  });
}

void EmittedSource::addToStep(const std::string &entry, int number, StringRef line) {
  if (std::string kernel = identifierBehind(line, " kernels::"); !kernel.empty())
    steps[{entry, number}].kernel = kernel;
  constexpr StringLiteral at = "at::";
  for (size_t i = line.find(at); i != StringRef::npos; i = line.find(at, i + 1)) {
    std::vector<int> &of = uses[{entry, identifierAt(line.drop_front(i + at.size())).str()}];
    if (of.empty() || of.back() != number)
      of.push_back(number);
  }
}

/// A kernel is its comment, what it runs on a device, and the function that steps call.
void EmittedSource::readKernels(const std::string &text) {
  int begin = 0;
  Kernel *open = nullptr;
  eachLine(text, [&](StringRef line, int number) {
    if (line.starts_with("namespace "))
      begin = 0;
    else if (begin == 0 && line.starts_with("//"))
      begin = number;
    if (line == "}" && open) {
      open->lines.last = number;
      open = nullptr;
      begin = 0;
    }
    if (!line.consume_front("void "))
      return;
    auto [kernel, isNew] = kernels.try_emplace(identifierAt(line).str());
    if (isNew) {
      kernel->second = {number, {begin > 0 ? begin : number, number}};
      open = &kernel->second;
    }
  });
}

/// Such as `constexpr in_activations<float> h_0_ln_1 = 512; // [8, 128], steps 0 to 134`.
void EmittedSource::readPlaces(const std::string &text) {
  std::string entry;
  eachLine(text, [&](StringRef line, int number) {
    if (line.consume_front("namespace "))
      entry = identifierAt(line).str();
    if (!line.consume_front("constexpr in_"))
      return;
    StringRef arena = identifierAt(line);
    line = line.split("> ").second;
    const std::string identifier = identifierAt(line).str();
    auto [value, comment] = line.split(" // ");
    int64_t offset = 0;
    if (value.split(" = ").second.consumeInteger(10, offset))
      return;
    const std::string key = placeKey(entry, arena, offset, keyOfSteps(comment.split("]").second));
    places.try_emplace(key, Place{number, identifier});
  });
}

const EmittedSource::Place *EmittedSource::placeOf(const NamedTensor &tensor) const {
  for (const std::string &key :
       {placeKey(tensor.entry, tensor.arena, tensor.offset, stepsKey(tensor.first, tensor.last)),
        placeKey(kShared, tensor.arena, tensor.offset, "")})
    if (auto found = places.find(key); found != places.end())
      return &found->second;
  return nullptr;
}

const EmittedSource::Step *EmittedSource::stepOf(const std::string &entry, int number) const {
  auto step = steps.find({entry, number});
  return step == steps.end() ? nullptr : &step->second;
}

const EmittedSource::Kernel *EmittedSource::kernelAt(const std::string &entry, int number) const {
  auto kernel = kernels.find(kernelOf(entry, number));
  return kernel == kernels.end() ? nullptr : &kernel->second;
}

std::string EmittedSource::kernelOf(const std::string &entry, int number) const {
  const Step *step = stepOf(entry, number);
  return step ? step->kernel : "";
}

std::string EmittedSource::lineOfStep(const std::string &entry, int number) const {
  const Step *step = stepOf(entry, number);
  return step ? stepFile + ":" + std::to_string(step->lines.first) : "";
}

std::string EmittedSource::lineOfKernel(const std::string &entry, int number) const {
  const Kernel *kernel = kernelAt(entry, number);
  return kernel ? kernelFile + ":" + std::to_string(kernel->line) : "";
}

std::optional<SourceLines> EmittedSource::linesOfStep(const std::string &entry, int number) const {
  const Step *step = stepOf(entry, number);
  return step ? std::optional(step->lines) : std::nullopt;
}

std::optional<SourceLines> EmittedSource::linesOfKernel(const std::string &entry,
                                                        int number) const {
  const Kernel *kernel = kernelAt(entry, number);
  return kernel ? std::optional(kernel->lines) : std::nullopt;
}

std::string EmittedSource::lineOfTensor(const NamedTensor &tensor) const {
  const Place *place = placeOf(tensor);
  return place ? memoryFile + ":" + std::to_string(place->line) : "";
}

std::vector<int> EmittedSource::stepsWith(const NamedTensor &tensor) const {
  const Place *place = placeOf(tensor);
  auto found = place ? uses.find({tensor.entry, place->identifier}) : uses.end();
  return found == uses.end() ? std::vector<int>() : found->second;
}

} // namespace trainc::inspect
