// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/parameters/ledger.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace llvm;

namespace trainc::reader {

static StringRef roleName(Role role) {
  constexpr const char *kNames[] = {"trained", "frozen", "buffer", "tied", "constant", "unused"};
  return kNames[static_cast<size_t>(role)];
}

std::string shapeText(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return join(map_range(shape, [](int64_t size) { return std::to_string(size); }), "x");
}

static bool isShown(const Parameter &one) {
  return one.isOfFloats() ? !one.isPartOfQuantized : one.isAsked;
}

static std::string withCommas(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(digits.begin() + at, ',');
  return digits;
}

std::string parameterCounts(const Parameters &parameters) {
  size_t trained = 0, frozen = 0, constants = 0;
  int64_t numbers = 0;
  for (const auto &one : parameters) {
    if (one->role == Role::trained)
      numbers += one->tensor->count;
    trained += one->role == Role::trained;
    frozen += one->role == Role::frozen;
    constants += one->role == Role::constant && isShown(*one);
  }
  auto counted = [](size_t count, StringRef one, StringRef several) {
    return std::to_string(count) + " " + (count == 1 ? one : several).str();
  };
  return counted(trained, "parameter trains", "parameters train") + " (" + withCommas(numbers) +
         " numbers), " + (frozen ? std::to_string(frozen) + " frozen, " : "") +
         counted(constants, "tensor is constant", "tensors are constants");
}

std::string parameterTable(const Parameters &parameters, const Ledger &ledger,
                           const Recipe &recipe) {
  std::string result;
  raw_string_ostream stream(result);
  size_t nameWidth = 4, shapeWidth = 5, groupWidth = 0, hidden = 0, trained = 0;
  int64_t elements = 0;
  if (!recipe.groups.empty())
    groupWidth = StringRef("group").size();
  for (const auto &group : recipe.groups)
    groupWidth = std::max(groupWidth, group.first.size());
  for (const auto &one : parameters) {
    hidden += !isShown(*one) && !one->isPartOfQuantized;
    trained += one->role == Role::trained;
    elements += one->role == Role::trained ? one->tensor->count : 0;
    if (!isShown(*one))
      continue;
    nameWidth = std::max(nameWidth, printable(one->name).size());
    shapeWidth = std::max(shapeWidth, shapeText(one->shape).size());
  }
  stream << trained << " trained parameters, " << elements << " elements"
         << (recipe.adapters.empty() ? "\n" : ", and adapters\n");
  auto row = [&](StringRef role, StringRef name, StringRef shape, StringRef decay, StringRef group,
                 StringRef reason) {
    stream << left_justify(role, 8) << "  " << left_justify(name, nameWidth) << "  "
           << left_justify(shape, shapeWidth) << "  " << left_justify(decay, 5) << "  ";
    if (groupWidth > 0)
      stream << left_justify(group, groupWidth) << "  ";
    stream << reason << '\n';
  };
  row("role", "name", "shape", "decay", "group", "why");
  for (const auto &one : parameters)
    if (isShown(*one))
      row(roleName(one->role), printable(one->name), shapeText(one->shape),
          one->role != Role::trained ? ""
          : one->decays              ? "yes"
                                     : "no",
          one->group, printable(one->reason));
  if (hidden)
    stream << hidden << " initializers of integers or booleans are constants\n";
  if (ledger.lacksRequiresGrad && recipe.adapters.empty())
    stream << "the file does not record requires_grad: what the module froze is trained, unless "
              "--freeze names it\n";
  for (const auto &[parameter, reason] : ledger.absent)
    stream << "not in the file: " << printable(parameter) << " (" << printable(reason) << ")\n";
  return result;
}

} // namespace trainc::reader
