// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/module_calls.h"
#include "compiler/onnx/exported_program.h"
#include "compiler/onnx/parameters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc::reader {

void ModuleCalls::addUse(StringRef path, StringRef value) {
  if (value.contains('.') && !isExporterName(value) && tensors(value))
    named[path.str()].insert(value.str());
}

// The path without the number of a further call.
static StringRef firstCall(StringRef path) {
  StringRef base = path.rtrim("0123456789");
  return base.size() < path.size() && base.ends_with("_") ? base.drop_back() : path;
}

static StringRef moduleOfName(StringRef name) { return name.rsplit('.').first; }

std::optional<bool> ModuleCalls::areOne(StringRef a, StringRef b) const {
  if (a == b)
    return true;
  if (firstCall(a) != b && firstCall(b) != a && firstCall(a) != firstCall(b))
    return false;
  auto one = named.find(a), other = named.find(b);
  if (one == named.end() || other == named.end())
    return std::nullopt;
  return any_of(one->second, [&](const std::string &name) {
    return any_of(other->second, [&](const std::string &another) {
      return moduleOfName(name) == moduleOfName(another);
    });
  });
}

// Of a module and those in it: initializers by their names without the module's, but the weight,
// which may have a name on one side only.
std::map<std::string, std::string> ModuleCalls::namesBelow(StringRef path,
                                                           const TensorBytes &weight) const {
  std::set<std::string> names;
  for (auto at = named.lower_bound(path); at != named.end(); ++at) {
    StringRef inner = at->first;
    if (!inner.consume_front(path))
      break;
    if (inner.empty() || inner.front() == '.')
      names.insert(at->second.begin(), at->second.end());
  }
  std::map<std::string, std::string> places;
  if (names.empty())
    return places;
  StringRef first = *names.begin(), last = *names.rbegin(); // what begins both, begins all
  size_t common =
      std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first - first.begin();
  size_t module = first.take_front(common).rfind('.') + 1;
  if (names.size() == 1)
    module = moduleOfName(first).size() + 1;
  for (const std::string &name : names)
    if (!sameValues(*tensors(name), weight, /*transposed=*/false) &&
        !sameValues(*tensors(name), weight, /*transposed=*/true))
      places[name.substr(module)] = name;
  return places;
}

// As PyTorch's own modules call what they learn. Buffers are equal in modules that are no copies.
static bool isLearntByName(StringRef name) {
  StringRef last = name.rsplit('.').second;
  return last.contains("weight") || last.contains("bias");
}

// Whether one of two modules is a copy of the other, as copy.deepcopy makes them: in both, and in
// the modules around them as far as the paths differ, the same has a name and is equal, and some of
// it was drawn or trained.
bool ModuleCalls::areCopies(StringRef a, StringRef b, const TensorBytes &weight) const {
  bool isTold = false;
  auto around = [](StringRef path) { return path.contains('.') ? path.rsplit('.').first : ""; };
  for (; !a.empty() && !b.empty() && a != b; a = around(a), b = around(b)) {
    const std::map<std::string, std::string> ones = namesBelow(a, weight),
                                             others = namesBelow(b, weight);
    if (ones.size() != others.size())
      return false;
    for (const auto &[one, other] : zip_equal(ones, others)) {
      if (one.first != other.first || one.second == other.second)
        return false;
      const TensorBytes &values = *tensors(one.second);
      if (!sameValues(values, *tensors(other.second), /*transposed=*/false))
        return false;
      isTold |= isLearntByName(one.second) && !mayBeWritten(values);
    }
  }
  return isTold;
}

std::optional<bool> ModuleCalls::areOneWeight(ArrayRef<WeightUse> a, ArrayRef<WeightUse> b,
                                              const TensorBytes &values) const {
  bool areTwo = !a.empty() && !b.empty();
  for (const WeightUse &one : a)
    for (const WeightUse &other : b) {
      std::optional<bool> same =
          one.path && other.path ? areOne(*one.path, *other.path) : std::nullopt;
      if (same.value_or(false))
        return true;
      areTwo = areTwo && same.has_value() &&
               (isUniform(values) || one.isRecurrent || other.isRecurrent ||
                areCopies(*one.path, *other.path, values));
    }
  return areTwo ? std::optional(false) : std::nullopt;
}

} // namespace trainc::reader
