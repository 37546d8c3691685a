// SPDX-License-Identifier: Apache-2.0
#include "compiler/version.h"
#include "compiler/cuda_toolkit.h"
#include "compiler/installation_paths.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace trainc {

std::string describeBuild(const Installation &installation) {
  std::string text = "trainc " + installation.version + "\n";
  auto row = [&](const char *name, const std::string &value) {
    std::string padded = name;
    padded.resize(20, ' ');
    text += "  " + padded + value + "\n";
  };
  row("built", TRAINC_BUILD_TYPE " by " TRAINC_BUILD_COMPILER);
  row("LLVM and MLIR", LLVM_VERSION_STRING);
  row("ONNX", TRAINC_ONNX_VERSION);
  row("oneDNN", TRAINC_DNNL_VERSION);
  for (const char *target : {"cpu", "cuda"})
    row(target == StringRef("cpu") ? "target cpu" : "target cuda",
        sys::fs::exists(installation.targetArchive(target))
            ? "compiled here"
            : "source only: this trainc was built without its libraries");
  std::string missing;
  std::optional<CudaToolkit> toolkit = findCudaToolkit("nvcc", missing);
  row("CUDA found", toolkit ? toolkit->nvcc : "no: " + missing);
  row("runtime", installation.libraryFolder);
  return text;
}

} // namespace trainc
