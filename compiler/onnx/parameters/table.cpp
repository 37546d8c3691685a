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

namespace {
/// Columns that are as wide as what they hold.
struct Columns {
  size_t name = 4, shape = 5, group = 0;

  void row(raw_ostream &stream, StringRef role, StringRef of, StringRef shapeOf, StringRef decay,
           StringRef groupOf, StringRef reason) const {
    stream << left_justify(role, 8) << "  " << left_justify(of, name) << "  "
           << left_justify(shapeOf, shape) << "  " << left_justify(decay, 5) << "  ";
    if (group > 0)
      stream << left_justify(groupOf, group) << "  ";
    stream << reason << '\n';
  }
};
} // namespace

static void addNotes(raw_ostream &stream, size_t hidden, const Ledger &ledger,
                     const Recipe &recipe) {
  if (hidden)
    stream << hidden << " initializers of integers or booleans are constants\n";
  if (ledger.lacksRequiresGrad && recipe.adapters.empty())
    stream << "the file does not record requires_grad: what the module froze is trained, unless "
              "--freeze names it\n";
  for (const auto &[parameter, other] : ledger.absent)
    stream << "not in the file: " << printable(parameter) << " ("
           << (other.empty() ? "nothing uses it, or it is another name of a parameter"
                             : "the same parameter as " + printable(other))
           << ")\n";
}

std::string parameterTable(const Parameters &parameters, const Ledger &ledger,
                           const Recipe &recipe) {
  std::string result;
  raw_string_ostream stream(result);
  Columns columns;
  size_t hidden = 0, trained = 0;
  int64_t elements = 0;
  if (!recipe.groups.empty())
    columns.group = StringRef("group").size();
  for (const auto &group : recipe.groups)
    columns.group = std::max(columns.group, group.first.size());
  for (const auto &one : parameters) {
    hidden += !isShown(*one) && !one->isPartOfQuantized;
    trained += one->role == Role::trained;
    elements += one->role == Role::trained ? one->tensor->count : 0;
    if (!isShown(*one))
      continue;
    columns.name = std::max(columns.name, printable(one->name).size());
    columns.shape = std::max(columns.shape, shapeText(one->shape).size());
  }
  stream << trained << " trained parameters, " << elements << " elements"
         << (recipe.adapters.empty() ? "\n" : ", and adapters\n");
  columns.row(stream, "role", "name", "shape", "decay", "group", "why");
  for (const auto &one : parameters)
    if (isShown(*one))
      columns.row(stream, roleName(one->role), printable(one->name), shapeText(one->shape),
                  one->role != Role::trained ? ""
                  : one->decays              ? "yes"
                                             : "no",
                  one->group, printable(one->reason));
  addNotes(stream, hidden, ledger, recipe);
  return result;
}

} // namespace trainc::reader
