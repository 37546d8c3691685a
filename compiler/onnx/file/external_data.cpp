// SPDX-License-Identifier: Apache-2.0
//
// Weights outside the model's file. A model may come from anywhere, so its locations may only
// name regular files inside its own folder, links resolved.
#include "compiler/onnx/file/model_file.h"
#include "runtime/files/inner_path.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"
#include <array>
#include <cstdlib>

using namespace llvm;

namespace trainc::reader {

// The folder and the file as the system resolves them; empty where there is none.
static std::string resolved(const std::string &path) {
  std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : std::string();
}

static std::string folderOf(StringRef path) {
  size_t slash = path.rfind('/');
  return slash == StringRef::npos ? "." : slash == 0 ? "/" : path.substr(0, slash).str();
}

static std::unique_ptr<MappedFile> openInside(const std::string &modelPath,
                                              const std::string &location, std::string &why) {
  why = problem_of_inner_path(location);
  if (!why.empty())
    return nullptr;
  std::string folder = resolved(folderOf(modelPath));
  std::string path = resolved(folder + "/" + location);
  if (path.empty()) {
    why = "does not exist";
    return nullptr;
  }
  if (path == folder) {
    why = "is the model's folder";
    return nullptr;
  }
  if (!StringRef(path).starts_with(folder == "/" ? folder : folder + "/")) {
    why = "is a link to outside the model's folder";
    return nullptr;
  }
  auto file = MappedFile::open(path, why);
  if (!file)
    why = "cannot be opened: " + why;
  return file;
}

/// As ONNX has it: SHA-1 of the whole file.
static std::string sha1Of(ArrayRef<char> bytes) {
  std::array<uint8_t, 20> digest =
      SHA1::hash(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  return toHex(digest, /*LowerCase=*/true);
}

/// With the contents that the checksum says, where there is one.
static std::unique_ptr<MappedFile> openWhole(const std::string &modelPath,
                                             const std::string &location,
                                             const std::string &checksum, std::string &why) {
  std::unique_ptr<MappedFile> file = openInside(modelPath, location, why);
  if (!file || checksum.empty() || checksum == sha1Of(file->bytes()))
    return file;
  why = "has other contents than its checksum " + checksum;
  return nullptr;
}

std::vector<std::string> ModelFile::paths() const {
  std::vector<std::string> all{filePath};
  for (const auto &entry : external)
    all.push_back(folderOf(filePath) + "/" + entry.first);
  all.insert(all.end(), alsoRead.begin(), alsoRead.end());
  return all;
}

std::optional<std::pair<std::string, int64_t>> ModelFile::placeOf(ArrayRef<char> bytes) const {
  for (const auto &[location, file] : external)
    if (file && !bytes.empty() && bytes.begin() >= file->bytes().begin() &&
        bytes.end() <= file->bytes().end())
      return std::pair(resolved(folderOf(filePath) + "/" + location),
                       static_cast<int64_t>(bytes.begin() - file->bytes().begin()));
  return std::nullopt;
}

void ModelFile::releasePages() const {
  mapped->releasePages();
  for (const auto &entry : external)
    if (entry.second)
      entry.second->releasePages();
}

bool ModelFile::resolveExternal(const onnx::TensorProto &tensor, TensorBytes &result,
                                Report &report) {
  std::string subject = "external data of initializer '" + tensor.name() + "'";
  auto fail = [&](const Twine &message, const Twine &advice = "") {
    (void)report.error(ExitCode::unreadableModel, filePath, subject + message, advice);
    return false;
  };
  std::string location, checksum;
  int64_t needed = valueBytes(result.dataType, result.count);
  int64_t offset = 0, length = needed;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    if (entry.key() == "checksum")
      checksum = StringRef(entry.value()).lower();
    int64_t *number = entry.key() == "offset"   ? &offset
                      : entry.key() == "length" ? &length
                                                : nullptr;
    if (number && (!to_integer(entry.value(), *number, 10) || *number < 0))
      return fail(": " + entry.key() + " '" + entry.value() + "' is not a size");
  }
  auto &file = external[location];
  std::string why;
  if (!file)
    file = openWhole(filePath, location, checksum, why);
  if (!file)
    return fail(
        ": file '" + location + "' " + why,
        "put the exporter's data file beside the model, under the name it was exported with");
  if (length != needed)
    return fail(" has " + Twine(length) + " bytes, but its shape needs " + Twine(needed));
  int64_t size = static_cast<int64_t>(file->bytes().size());
  if (offset > size || length > size - offset)
    return fail(": file '" + location + "' has " + Twine(size) + " bytes, shorter than the " +
                    Twine(offset) + " + " + Twine(length) + " declared",
                "copy the data file again");
  result.bytes = file->bytes().slice(offset, length);
  return true;
}

} // namespace trainc::reader
