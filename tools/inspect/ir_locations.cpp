// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/ir_locations.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <utility>

namespace trainc::inspect {

// Of locations in each other, and of all that one names: a damaged file may have an endless chain,
// or one that divides.
constexpr int kDeepest = 64, kMost = 1 << 14;
constexpr std::string_view kOfFile = "\"node\"";

std::string LocatedName::title() const {
  std::string text;
  for (const char *word : {"recomputed", "gradient"})
    if (std::find(around.begin(), around.end(), word) != around.end())
      text = std::string(word) + (std::string_view(word) == "gradient" ? " of " : " ") + text;
  return text + name;
}

/// A location as it is printed. Of a damaged file it reads what it can.
class LocationReader {
public:
  LocationReader(const IrLocations &locations, std::string_view text, int depth, int &count)
      : locations(locations), text(text), depth(depth), count(count) {}

  std::vector<LocatedName> read() {
    if (depth > kDeepest || ++count > kMost)
      return {};
    if (take("fused"))
      return readFused();
    if (!text.empty() && text.front() == '#')
      return readAlias();
    if (!text.empty() && text.front() == '"')
      return readName();
    return {};
  }

private:
  bool take(std::string_view word) {
    if (text.substr(0, word.size()) != word)
      return false;
    text.remove_prefix(word.size());
    return true;
  }

  std::vector<LocatedName> inner() {
    LocationReader reader(locations, text, depth + 1, count);
    std::vector<LocatedName> names = reader.read();
    text = reader.text;
    return names;
  }

  std::vector<LocatedName> readAlias() {
    size_t end = 1;
    while (end < text.size() && llvm::isAlnum(text[end]))
      ++end;
    auto alias = locations.aliases.find(text.substr(0, end));
    text.remove_prefix(end);
    if (alias == locations.aliases.end())
      return {};
    return LocationReader(locations, alias->second, depth + 1, count).read();
  }

  /// `fused["a", "b"]` are several names, `fused<"node">["a"]` labels of the file.
  std::vector<LocatedName> readFused() {
    bool areLabels = false;
    if (take("<")) {
      areLabels = text.substr(0, kOfFile.size()) == kOfFile;
      text.remove_prefix(std::min(text.size(), text.find(">[")));
      take(">");
    }
    std::vector<LocatedName> names;
    if (!take("["))
      return names;
    do {
      take(" ");
      for (LocatedName &name : inner())
        names.push_back(std::move(name));
    } while (take(","));
    take("]");
    if (!areLabels)
      return names;
    LocatedName labels;
    for (const LocatedName &name : names)
      labels.labels.push_back(name.name);
    return {labels};
  }

  std::vector<LocatedName> readName() {
    const std::string name = readString();
    std::vector<LocatedName> names;
    if (take("(")) {
      names = inner();
      take(")");
    }
    if (names.empty())
      return {{name, {}, {}}};
    for (LocatedName &within : names)
      if (within.name.empty())
        within.name = name;
      else
        within.around.push_back(name);
    return names;
  }

  std::string readString() {
    std::string value;
    size_t i = 1;
    for (; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        value += text[i];
      } else if (i + 2 < text.size() && llvm::isHexDigit(text[i + 1]) &&
                 llvm::isHexDigit(text[i + 2])) {
        value += char(llvm::hexFromNibbles(text[i + 1], text[i + 2]));
        i += 2;
      } else {
        value += text[++i];
      }
    }
    text.remove_prefix(std::min(text.size(), i + 1));
    return value;
  }

  const IrLocations &locations;
  std::string_view text;
  int depth;
  int &count; // of locations that were read
};

IrLocations::IrLocations(const std::vector<std::string_view> &lines) {
  constexpr std::string_view is = " = loc(";
  for (std::string_view line : lines)
    if (!line.empty() && line.front() == '#')
      if (size_t at = line.find(is); at != std::string_view::npos)
        aliases[line.substr(0, at)] = line.substr(at + is.size());
}

std::vector<LocatedName> IrLocations::namesIn(std::string_view text) const {
  int count = 0;
  return LocationReader(*this, text, 0, count).read();
}

} // namespace trainc::inspect
