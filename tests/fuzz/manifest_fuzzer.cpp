// SPDX-License-Identifier: Apache-2.0
//
// What reads the manifests of users' operators, under libFuzzer with sanitizers: whatever the bytes
// are, the reader gives a manifest or an error and never both nor neither, and each of its
// expressions a number or an error. Beside the manifest lie a header `f.h` and the sources `f.cpp`
// and `f.cu`.
#include "compiler/onnx/graph/size_expression.h"
#include "compiler/onnx/import/operator_manifest.h"
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

using namespace trainc;

namespace {

void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "manifest_fuzzer: %s\n", what);
  std::abort();
}

void write(const std::string &path, const void *bytes, size_t size) {
  FILE *file = std::fopen(path.c_str(), "w");
  require(file && std::fwrite(bytes, 1, size, file) == size, "a file cannot be written");
  std::fclose(file);
}

/// A folder in memory of this process's own, with the files of an operator.
class OperatorFolder {
public:
  OperatorFolder() {
    char made[] = "/dev/shm/manifest_fuzzer-XXXXXX";
    require(mkdtemp(made), "no folder in memory can be made");
    path = made;
    for (const char *file : {"f.h", "f.cpp", "f.cu"})
      write(path + "/" + file, file, 1);
  }
  ~OperatorFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

/// Sizes and attributes as a model would have them: some are large, some are not there.
void evaluate(const std::string &expression) {
  auto lookup = [](llvm::StringRef name, std::optional<int64_t> index,
                   std::string &) -> std::optional<int64_t> {
    if (index)
      return *index == 0 ? int64_t(1) << 40 : *index;
    return static_cast<int64_t>(name.size()) - 1;
  };
  std::string problem;
  const auto size = evaluateSize(expression, lookup, problem);
  require(size || !problem.empty(), "neither a size nor an error");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const OperatorFolder folder;
  static const std::string path = folder.path + "/operator.json";
  write(path, data, size);
  for (const char *target : {"cpu", "cuda"}) {
    Report report;
    auto manifest = readOperatorManifest(path, target, report);
    require((manifest != nullptr) == report.empty(), "a manifest and errors, or neither");
    (void)report.text();
    if (!manifest)
      continue;
    for (const ManifestOutput &output : manifest->outputs)
      for (const std::string &expression : output.shape)
        evaluate(expression);
    for (const std::string &number : manifest->forward.numbers)
      evaluate(number);
  }
  return 0;
}
