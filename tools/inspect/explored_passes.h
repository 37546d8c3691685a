// SPDX-License-Identifier: Apache-2.0
//
// The operations of all dumps of a compilation, as a page has them: every text once, operations as
// numbers of texts, and the names in their locations, which lead from pass to pass.
#pragma once

#include "tools/inspect/ir_dump.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace trainc::inspect {

/// Texts by numbers, in the order of their first use.
class StringTable {
public:
  int numberOf(const std::string &text);
  const std::string &at(int number) const { return texts[size_t(number)]; }
  size_t size() const { return texts.size(); }
  const std::vector<std::string> &all() const { return texts; }

private:
  std::unordered_map<std::string, int> numbers;
  std::vector<std::string> texts;
};

/// An operation that stands directly in an entry function of the last dump.
struct EntryOperation {
  std::string entry, operation;
  std::vector<std::string> titles; // each once
  size_t index;                    // among all of the dump
};

class ExploredPasses {
public:
  /// The files in their order. Throws `failure` (exit_data) of one that has no operations.
  explicit ExploredPasses(const std::vector<std::string> &files);

  /// Adds `strings`, `titles`, `sets` and `passes` to the document.
  void addTo(nlohmann::ordered_json &document) const;

  /// Names without `gradient of` and `recomputed`, in the order of the document's titles.
  const StringTable &subjects() const { return subjectNames; }
  /// What the model's file calls the node of each subject.
  const std::vector<std::set<std::string>> &labels() const { return labelsOfSubjects; }
  const std::vector<EntryOperation> &lastOperations() const { return last; }
  bool areTextsWhole() const { return textBytes <= kMostTextBytes; }

private:
  /// Members of a pass in the document, one number for each operation.
  struct Columns {
    std::vector<int> line, depth, operation, results, type, text, names;
    std::vector<int> isNew; // its text does not stand in the pass before
  };
  static constexpr size_t kMostTextBytes = size_t(10) << 20;

  void addPass(const std::string &file);
  void addOperation(const DumpedOperation &operation, Columns &columns);
  int setOf(const std::vector<LocatedName> &names);
  int titleOf(const LocatedName &name);
  int textOf(const std::string &text);
  void keepLast(const std::vector<DumpedOperation> &operations);

  StringTable strings, subjectNames;
  std::vector<std::set<std::string>> labelsOfSubjects;
  std::unordered_map<int, int> titleNumbers; // by text
  nlohmann::ordered_json titles = nlohmann::ordered_json::array();
  std::unordered_map<std::string, int> setNumbers;
  nlohmann::ordered_json sets = nlohmann::ordered_json::array();
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  std::vector<std::string> before; // texts of the pass before
  std::vector<EntryOperation> last;
  size_t textBytes = 0;
};

} // namespace trainc::inspect
