// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/ir_dump.h"

#include "runtime/failure.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <utility>

namespace trainc::inspect {

using llvm::StringRef;

namespace {

constexpr StringRef kLocation = " loc(";

/// `nn.matmul` of `%0 = nn.matmul %a ...`; with the symbol after it.
std::string operationIn(StringRef line) {
  line = line.ltrim(' ');
  if (line.starts_with("%"))
    line = line.drop_front(std::min(line.size(), line.find(" = ") + 3));
  size_t end = std::min(line.find_first_of(" (<{"), line.size());
  if (line.substr(end).starts_with(" @"))
    end = std::min(line.find_first_of(" (<{", end + 1), line.size());
  return line.take_front(end).str();
}

class DumpReader {
public:
  explicit DumpReader(StringRef text) : locations(text) { text.split(lines, '\n'); }

  std::vector<DumpedOperation> run() {
    for (size_t i = 0; i < lines.size(); ++i)
      if (StringRef line = lines[i]; !line.empty() && line[0] != '#' && line[0] != '/')
        readLine(line, int(i));
    std::stable_sort(found.begin(), found.end(),
                     [](const auto &a, const auto &b) { return a.line < b.line; });
    return std::move(found);
  }

private:
  void readLine(StringRef line, int number) {
    if (open == 0)
      statement = number;
    int ends = statement; // the line at which what ends here began
    const bool closes = line.ltrim(' ').starts_with("}");
    if (closes && !regions.empty()) {
      ends = regions.back();
      regions.pop_back();
    }
    size_t last = 0; // after the location before
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"') {
        while (++i < line.size() && line[i] != '"')
          i += line[i] == '\\';
      } else if (line.substr(i).starts_with(kLocation)) {
        addLocation(line, i, last, number, ends);
        last = i + kLocation.size();
      } else if (line[i] == '(' || line[i] == '[') {
        ++open;
      } else if (line[i] == ')' || line[i] == ']') {
        open = std::max(0, open - 1);
      }
    }
    if (line.ends_with("{"))
      regions.push_back(closes ? ends : statement);
  }

  /// The location at `at` in the line: within brackets that of an argument, else of an operation.
  void addLocation(StringRef line, size_t at, size_t last, int number, int begins) {
    const int depth = int(regions.size());
    std::vector<LocatedName> names = locations.namesIn(line.substr(at + kLocation.size()));
    if (open > 0) {
      // `%x: tensor<4xf32>` of `, %x: tensor<4xf32>`
      const StringRef text = line.slice(line.find('%', last), at);
      const StringRef name = text.split(':').first;
      found.push_back({number + 1, depth + 1,
                       (name.empty() ? "argument" : "argument " + name).str(), text.str(),
                       std::move(names)});
      return;
    }
    const StringRef first = lines[size_t(begins)], end = line.take_front(at).ltrim(' ');
    std::string text = begins == number ? end.str() : (first.ltrim(' ') + " ... " + end).str();
    found.push_back({begins + 1, depth, operationIn(first), std::move(text), std::move(names)});
  }

  llvm::SmallVector<StringRef> lines;
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
    if (StringRef(entry->path()).ends_with(".mlir"))
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
