// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/explored_passes.h"

#include "runtime/failure.h"
#include "tools/inspect/name_search.h"
#include "tools/inspect/text_file.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <filesystem>

namespace trainc::inspect {

using llvm::StringRef;
using nlohmann::ordered_json;

namespace {

constexpr size_t kMostText = 4000; // bytes of an operation
constexpr int kOfFunction = 2;     // the depth of operations and arguments of a function

bool isNameCharacter(char c) { return llvm::isAlnum(c) || StringRef("$._-").contains(c); }

/// The text with `%` in the place of each value's name, and all that its location says: equal for
/// operations that differ in the names of values alone.
std::string comparable(const DumpedOperation &operation) {
  std::string key;
  const std::string &text = operation.text;
  for (size_t i = 0; i < text.size(); ++i) {
    key += text[i];
    if (text[i] == '%')
      while (i + 1 < text.size() && isNameCharacter(text[i + 1]))
        ++i;
  }
  for (const LocatedName &name : operation.names) {
    key += '\n' + name.name;
    for (const auto *words : {&name.around, &name.labels})
      for (const std::string &word : *words)
        key += '\t' + word;
  }
  return key;
}

/// For each text whether `before` does not have it so often.
std::vector<int> newAmong(const std::vector<std::string> &texts,
                          const std::vector<std::string> &before) {
  std::unordered_map<std::string_view, int> left;
  for (const std::string &text : before)
    ++left[text];
  std::vector<int> isNew;
  for (const std::string &text : texts)
    isNew.push_back(--left[text] < 0);
  return isNew;
}

/// `%a, %b` of `%a, %b = nn.split ...`.
std::string resultsOf(StringRef text) {
  return text.starts_with("%") && text.contains(" = ") ? text.split(" = ").first.str() : "";
}

/// What follows the last arrow, or else the last colon.
std::string typeOf(StringRef text) {
  for (StringRef mark : {" -> ", " : ", ": "})
    if (size_t at = text.rfind(mark); at != StringRef::npos)
      return text.drop_front(at + mark.size()).split(" {").first.str();
  return "";
}

/// `fuse` of `dumps/12-fuse.mlir`.
std::string passOf(const std::string &file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return StringRef(stem).ltrim("0123456789").ltrim('-').str();
}

} // namespace

int StringTable::numberOf(const std::string &text) {
  auto [found, isNew] = numbers.try_emplace(text, int(texts.size()));
  if (isNew)
    texts.push_back(text);
  return found->second;
}

ExploredPasses::ExploredPasses(const std::vector<std::string> &files) {
  for (const std::string &file : files)
    addPass(file);
}

void ExploredPasses::addPass(const std::string &file) {
  const std::vector<DumpedOperation> operations = operationsOf(readText(file));
  if (operations.empty())
    throw failure(exit_data, file + ": has no operations\n  try: the folder of trainc --dump-ir "
                                    "FOLDER, as it was written");
  Columns columns;
  std::vector<std::string> keys;
  for (const DumpedOperation &operation : operations) {
    addOperation(operation, columns);
    keys.push_back(comparable(operation));
  }
  columns.isNew = newAmong(keys, before);
  const bool isReordered = keys != before && keys.size() == before.size() &&
                           std::count(columns.isNew.begin(), columns.isNew.end(), 1) == 0;
  before = std::move(keys);
  keepLast(operations);
  passes.push_back({{"pass", passOf(file)},
                    {"file", file},
                    {"line", columns.line},
                    {"depth", columns.depth},
                    {"operation", columns.operation},
                    {"results", columns.results},
                    {"type", columns.type},
                    {"text", columns.text},
                    {"names", columns.names},
                    {"new", columns.isNew},
                    {"reordered", isReordered}});
}

void ExploredPasses::addOperation(const DumpedOperation &operation, Columns &columns) {
  columns.line.push_back(operation.line);
  columns.depth.push_back(operation.depth);
  columns.operation.push_back(strings.numberOf(operation.operation));
  columns.results.push_back(strings.numberOf(resultsOf(operation.text)));
  columns.type.push_back(strings.numberOf(typeOf(operation.text).substr(0, kMostText)));
  columns.text.push_back(textOf(operation.text));
  columns.names.push_back(setOf(operation.names));
}

/// -1 where the page has no room for it.
int ExploredPasses::textOf(const std::string &text) {
  if (!areTextsWhole())
    return -1;
  const size_t known = strings.size();
  const int number = strings.numberOf(
      text.size() > kMostText ? text.substr(0, kMostText) + " ... and so on" : text);
  if (strings.size() > known)
    textBytes += strings.at(number).size();
  return number;
}

int ExploredPasses::titleOf(const LocatedName &name) {
  const std::string title = name.title();
  const int subject = subjectNames.numberOf(subjectOf(title));
  labelsOfSubjects.resize(subjectNames.size());
  labelsOfSubjects[size_t(subject)].insert(name.labels.begin(), name.labels.end());
  const int text = strings.numberOf(title);
  auto [number, isNew] = titleNumbers.try_emplace(text, int(titles.size()));
  if (isNew)
    titles.push_back({text, subject});
  return number->second;
}

int ExploredPasses::setOf(const std::vector<LocatedName> &names) {
  ordered_json set = ordered_json::array();
  for (const LocatedName &name : names)
    if (const int title = titleOf(name); std::find(set.begin(), set.end(), title) == set.end())
      set.push_back(title);
  auto [number, isNew] = setNumbers.try_emplace(set.dump(), int(sets.size()));
  if (isNew)
    sets.push_back(std::move(set));
  return number->second;
}

void ExploredPasses::keepLast(const std::vector<DumpedOperation> &operations) {
  last.clear();
  std::string entry;
  for (size_t i = 0; i < operations.size(); ++i) {
    const DumpedOperation &each = operations[i];
    if (each.depth < kOfFunction)
      entry = StringRef(each.operation).split('@').second.str();
    if (each.depth != kOfFunction)
      continue;
    std::vector<std::string> titlesOfIt;
    for (const LocatedName &name : each.names)
      if (std::string title = name.title(); !llvm::is_contained(titlesOfIt, title))
        titlesOfIt.push_back(std::move(title));
    last.push_back({entry, each.operation, std::move(titlesOfIt), i});
  }
}

void ExploredPasses::addTo(ordered_json &document) const {
  document["strings"] = strings.all();
  document["titles"] = titles;
  document["sets"] = sets;
  document["passes"] = passes;
}

} // namespace trainc::inspect
