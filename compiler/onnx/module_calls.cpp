// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/module_calls.h"
#include "compiler/onnx/exported_program.h"
#include "compiler/onnx/parameters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc::reader {

static constexpr char kSeparators[] = "/."; // of a path, as a node's name or the IR has it

void ModuleCalls::addUse(StringRef path, StringRef value) {
  if (value.contains('.') && !isExporterName(value))
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

// Of a module and those in it: values by their names without the module's.
std::map<std::string, std::string> ModuleCalls::namesBelow(StringRef path) const {
  std::set<std::string> names;
  for (auto at = named.lower_bound(path); at != named.end(); ++at) {
    StringRef inner = at->first;
    if (!inner.consume_front(path))
      break;
    if (inner.empty() || StringRef(kSeparators).contains(inner.front()))
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
    places[name.substr(module)] = name;
  return places;
}

static StringRef around(StringRef path) {
  size_t end = path.find_last_of(kSeparators);
  return end == StringRef::npos ? "" : path.take_front(end);
}

bool ModuleCalls::areCopies(StringRef a, StringRef b, Tensors tensors) const {
  for (; !a.empty() && !b.empty() && a != b; a = around(a), b = around(b)) {
    bool isTold = false;
    std::map<std::string, std::string> others = namesBelow(b);
    for (const auto &[place, name] : namesBelow(a)) {
      auto other = others.find(place);
      if (other == others.end())
        continue;
      const TensorBytes *values = tensors(name), *otherValues = tensors(other->second);
      if (!values || !otherValues)
        continue;
      if (name == other->second || !sameValues(*values, *otherValues, /*transposed=*/false))
        return false;
      isTold |= !mayBeWritten(*values);
    }
    if (isTold)
      return true;
  }
  return false;
}

} // namespace trainc::reader
