// SPDX-License-Identifier: Apache-2.0
//
// Finds nvcc, and beside it or among the system's own what a CUDA trainer is built with.
#include "compiler/cuda_toolkit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace llvm;

namespace trainc {

static const char kUsualFolder[] = "/usr/local/cuda/bin";

static std::string findNvcc(StringRef name) {
  if (name.contains('/')) {
    SmallString<256> path(name); // the compilation has another working folder
    return !sys::fs::can_execute(name) || sys::fs::make_absolute(path) ? "" : path.str().str();
  }
  if (auto found = sys::findProgramByName(name))
    return *found;
  auto usual = sys::findProgramByName(name, {kUsualFolder});
  return usual ? *usual : "";
}

/// The folders that may hold a toolkit's headers and libraries: around the program as it was
/// found, and around what that is a link to.
static std::vector<std::string> rootsOf(StringRef nvcc) {
  std::vector<std::string> roots;
  SmallString<256> real;
  (void)sys::fs::real_path(nvcc, real);
  for (StringRef program : {nvcc, real.str()}) {
    std::string root = sys::path::parent_path(sys::path::parent_path(program)).str();
    if (!root.empty() && !is_contained(roots, root))
      roots.push_back(root);
  }
  return roots;
}

/// The first of `folders` that holds `name`; empty where none does.
static std::string folderOf(ArrayRef<std::string> folders, const Twine &name) {
  for (const std::string &folder : folders)
    if (sys::fs::exists(folder + "/" + name))
      return folder;
  return "";
}

std::optional<CudaToolkit> findCudaToolkit(StringRef name, std::string &missing) {
  CudaToolkit found;
  found.nvcc = findNvcc(name);
  if (found.nvcc.empty()) {
    missing = "cannot find the CUDA compiler '" + name.str() + "'";
    return std::nullopt;
  }
  std::vector<std::string> headers, libraries;
  for (const std::string &root : rootsOf(found.nvcc))
    for (const char *part : {"", "/targets/x86_64-linux"}) {
      headers.push_back(root + part + "/include");
      for (const char *folder : {"/lib64", "/lib"})
        libraries.push_back(root + part + folder);
    }
  headers.push_back("/usr/include");
  libraries.push_back("/usr/lib/x86_64-linux-gnu");

  std::vector<std::string> absent, folders;
  auto note = [&](std::vector<std::string> &list, ArrayRef<std::string> among, StringRef file) {
    std::string folder = folderOf(among, file);
    if (folder.empty())
      absent.push_back(file.str());
    else if (!is_contained(list, folder))
      list.push_back(folder);
  };
  for (const char *header : {"cuda_runtime.h", "cublasLt.h", "nccl.h"})
    note(found.includes, headers, header);
  for (const char *library : {"libcudart_static.a", "libcublasLt.so", "libnccl.so"})
    note(folders, libraries, library);
  if (!absent.empty()) {
    missing = "the CUDA toolkit of '" + found.nvcc + "' lacks " + join(absent, ", ");
    return std::nullopt;
  }
  std::erase(found.includes, "/usr/include"); // searched anyway, and must stay last
  for (const std::string &folder : folders) {
    found.linkArguments.push_back("-L" + folder);
    found.runPath.push_back("-Wl,-rpath," + folder);
  }
  for (const char *library : {"-lcublasLt", "-lnccl", "-lcudart_static", "-ldl", "-lrt"})
    found.linkArguments.push_back(library);
  return found;
}

std::optional<std::vector<std::string>> parseCudaArchitectures(StringRef list) {
  SmallVector<StringRef> parts;
  list.split(parts, ',');
  std::vector<std::string> architectures;
  for (StringRef part : parts) {
    StringRef digits = part.take_while(isDigit), feature = part.drop_front(digits.size());
    // nvcc knows which exist; this keeps anything but a number out of its command line.
    bool good = digits.size() >= 2 && digits.size() <= 3 &&
                (feature.empty() || feature == "a" || feature == "f");
    if (!good || is_contained(architectures, part))
      return std::nullopt;
    architectures.push_back(part.str());
  }
  return architectures;
}

} // namespace trainc
