// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/ir_locations.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <utility>

namespace trainc::inspect {

using llvm::StringRef;

// Of locations in each other, and of all that one names: a damaged file may have an endless chain,
// or one that divides.
constexpr int kDeepest = 64, kMost = 1 << 14;
constexpr StringRef kOfFile = "\"node\"";

std::string LocatedName::title() const {
  std::string text;
  for (const char *word : {"recomputed", "gradient"})
    if (llvm::is_contained(around, word))
      text = std::string(word) + (StringRef(word) == "gradient" ? " of " : " ") + text;
  return text + name;
}

/// A location as it is printed. Of a damaged file it reads what it can.
class LocationReader {
public:
  LocationReader(const IrLocations &locations, StringRef text, int depth, int &count)
      : locations(locations), text(text), depth(depth), count(count) {}

  std::vector<LocatedName> read() {
    if (depth > kDeepest || ++count > kMost)
      return {};
    if (text.consume_front("fused"))
      return readFused();
    if (text.starts_with("#"))
      return readAlias();
    if (text.starts_with("\""))
      return readName();
    return {};
  }

private:
  std::vector<LocatedName> inner() {
    LocationReader reader(locations, text, depth + 1, count);
    std::vector<LocatedName> names = reader.read();
    text = reader.text;
    return names;
  }

  std::vector<LocatedName> readAlias() {
    const size_t end = 1 + text.drop_front().take_while(llvm::isAlnum).size();
    auto alias = locations.aliases.find(text.take_front(end));
    text = text.drop_front(end);
    if (alias == locations.aliases.end())
      return {};
    return LocationReader(locations, alias->second, depth + 1, count).read();
  }

  /// `fused["a", "b"]` are several names, `fused<"node">["a"]` labels of the file.
  std::vector<LocatedName> readFused() {
    bool areLabels = false;
    if (text.consume_front("<")) {
      areLabels = text.starts_with(kOfFile);
      text = text.substr(text.find(">["));
      text.consume_front(">");
    }
    std::vector<LocatedName> names;
    if (!text.consume_front("["))
      return names;
    do {
      text.consume_front(" ");
      llvm::append_range(names, inner());
    } while (text.consume_front(","));
    text.consume_front("]");
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
    if (text.consume_front("(")) {
      names = inner();
      text.consume_front(")");
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
    text = text.substr(i + 1);
    return value;
  }

  const IrLocations &locations;
  StringRef text;
  int depth;
  int &count; // of locations that were read
};

IrLocations::IrLocations(StringRef text) {
  constexpr StringRef is = " = loc(";
  for (StringRef line : llvm::split(text, '\n'))
    if (line.starts_with("#") && line.contains(is)) {
      auto [alias, location] = line.split(is);
      aliases[alias] = location;
    }
}

std::vector<LocatedName> IrLocations::namesIn(StringRef text) const {
  int count = 0;
  return LocationReader(*this, text, 0, count).read();
}

} // namespace trainc::inspect
