// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/ir_dump.h"

#include "runtime/failure.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <utility>

namespace trainc::inspect {

namespace {

constexpr std::string_view kLocation = " loc(";

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  return text;
}

/// `nn.matmul` of `%0 = nn.matmul %a ...`; with the symbol after it.
std::string operationIn(std::string_view line) {
  line = trimmed(line);
  if (line.substr(0, 1) == "%")
    line.remove_prefix(std::min(line.size(), line.find(" = ") + 3));
  size_t end = std::min(line.find_first_of(" (<{"), line.size());
  if (line.substr(end, 2) == " @")
    end = std::min(line.find_first_of(" (<{", end + 1), line.size());
  return std::string(line.substr(0, end));
}

/// `%x: tensor<4xf32>` of `, %x: tensor<4xf32>`.
std::string_view argumentIn(std::string_view text) {
  return text.substr(std::min(text.size(), text.find('%')));
}

class DumpReader {
public:
  explicit DumpReader(const std::string &text) : lines(linesOf(text)), locations(lines) {}

  std::vector<DumpedOperation> run() {
    for (size_t i = 0; i < lines.size(); ++i)
      if (std::string_view line = lines[i]; !line.empty() && line[0] != '#' && line[0] != '/')
        readLine(line, int(i));
    std::stable_sort(found.begin(), found.end(),
                     [](const auto &a, const auto &b) { return a.line < b.line; });
    return std::move(found);
  }

private:
  void readLine(std::string_view line, int number) {
    if (open == 0)
      statement = number;
    int ends = statement; // the line at which what ends here began
    const std::string_view content = trimmed(line);
    if (!content.empty() && content[0] == '}' && !regions.empty()) {
      ends = regions.back();
      regions.pop_back();
    }
    size_t last = 0; // after the location before
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"') {
        while (++i < line.size() && line[i] != '"')
          i += line[i] == '\\';
      } else if (line.substr(i, kLocation.size()) == kLocation) {
        addLocation(line, i, last, number, ends);
        last = i + kLocation.size();
      } else if (line[i] == '(' || line[i] == '[') {
        ++open;
      } else if (line[i] == ')' || line[i] == ']') {
        open = std::max(0, open - 1);
      }
    }
    if (!line.empty() && line.back() == '{')
      regions.push_back(content[0] == '}' ? ends : statement);
  }

  /// The location at `at` in the line: within brackets that of an argument, else of an operation.
  void addLocation(std::string_view line, size_t at, size_t last, int number, int begins) {
    const int depth = int(regions.size());
    std::vector<LocatedName> names = locations.namesIn(line.substr(at + kLocation.size()));
    if (open > 0) {
      const std::string_view text = argumentIn(line.substr(last, at - last));
      const std::string_view name = text.substr(0, text.find(':'));
      found.push_back({number + 1, depth + 1,
                       "argument" + std::string(name.empty() ? "" : " ") + std::string(name),
                       std::string(text), std::move(names)});
      return;
    }
    const std::string_view first = lines[size_t(begins)];
    std::string text(begins == number ? line.substr(0, at) : first);
    if (begins != number)
      text += " ... " + std::string(trimmed(line.substr(0, at)));
    found.push_back(
        {begins + 1, depth, operationIn(first), std::string(trimmed(text)), std::move(names)});
  }

  std::vector<std::string_view> lines;
  IrLocations locations;
  std::vector<DumpedOperation> found;
  std::vector<int> regions; // the lines that open regions began at
  int statement = 0;        // the line where what is being read began
  int open = 0;             // brackets of it
};

} // namespace

std::vector<DumpedOperation> operationsOf(const std::string &text) {
  return DumpReader(text).run();
}

std::vector<std::string> dumpsIn(const std::string &folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (llvm::StringRef(entry->path()).ends_with(".mlir"))
      files.push_back(entry->path());
  std::sort(files.begin(), files.end());
  return files;
}

void refuseDumps(const std::string &folder) {
  std::error_code error;
  const llvm::sys::fs::directory_iterator entries(folder, error);
  throw failure(exit_data, folder + ": has no files of IR" + (error ? ": " + error.message() : "") +
                               "\n  try: the folder of trainc --dump-ir FOLDER");
}

} // namespace trainc::inspect
