// SPDX-License-Identifier: Apache-2.0
//
// What a compilation made takes the place of what an earlier one left. A process can be killed
// between any two renamings, so their order is all: the files of the new trainer, in a folder that
// only it looks into; the trainer; then its files' usual names, the source and the plans.
#include "compiler/output_exchange.h"
#include "runtime/own_files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/BuildID.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

using namespace llvm;
namespace fs = std::filesystem;

namespace trainc {

namespace {

constexpr const char *kReadByTrainer[] = {"parameters.safetensors", "export_template.onnx"};

/// What a compilation may make; an entry that this one did not make is of an earlier one.
constexpr const char *kEntries[] = {"trainer", "trainer.libs",           "source",
                                    "plan",    "parameters.safetensors", "export_template.onnx"};

bool isFolder(const fs::path &path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

bool sameContent(const fs::path &one, const fs::path &other) {
  std::error_code error;
  if (fs::file_size(one, error) != fs::file_size(other, error) || error)
    return false;
  auto map = [](const fs::path &path) {
    return MemoryBuffer::getFile(path.string(), /*IsText=*/false,
                                 /*RequiresNullTerminator=*/false);
  };
  auto first = map(one), second = map(other);
  return first && second && (*first)->getBuffer() == (*second)->getBuffer();
}

/// Gives the files of `made` the time stamps of those of `old` that have the same content. Whether
/// all have, and `old` has no further ones.
bool keepTimes(const fs::path &made, const fs::path &old) {
  std::error_code error;
  if (isFolder(made) != isFolder(old))
    return false;
  if (!isFolder(made)) {
    if (!fs::is_regular_file(fs::symlink_status(old, error)) || !sameContent(made, old))
      return false;
    fs::last_write_time(made, fs::last_write_time(old, error), error);
    return !error;
  }
  bool same = true;
  for (const fs::directory_entry &entry : fs::directory_iterator(made, error))
    same &= keepTimes(entry.path(), old / entry.path().filename());
  for (const fs::directory_entry &entry : fs::directory_iterator(old, error))
    same &= fs::exists(fs::symlink_status(made / entry.path().filename(), error));
  return same && !error;
}

/// The build id of a program in hexadecimal; empty where there is none.
std::string buildIdOf(const std::string &program) {
  auto file = object::ObjectFile::createObjectFile(program);
  if (!file) {
    consumeError(file.takeError());
    return "";
  }
  return toHex(object::getBuildID(file->getBinary()), /*LowerCase=*/true);
}

bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// Moves what one compilation made over what another left. Functions are false where they fail,
/// which `problem` explains.
class Exchange {
public:
  Exchange(fs::path partial, fs::path target)
      : partial(std::move(partial)), target(std::move(target)) {}

  ~Exchange() {
    if (held >= 0)
      ::close(held);
  }

  std::string run() {
    lock();
    for (const char *name : kEntries)
      if (waits(name))
        made.insert(name);
    if (!finishKilled())
      return problem;
    dropUnchanged();
    if (!made.contains("trainer"))
      fs::remove(target / "trainer", ignored); // nothing that comes now belongs to it
    return moveAll() ? "" : problem;
  }

private:
  bool waits(StringRef name) const { return isThere(partial / name.str()); }

  /// Says what went wrong with `path`.
  bool good(const std::error_code &error, const fs::path &path) {
    if (error)
      problem = path.string() + ": " + error.message();
    return !error;
  }

  bool rename(const fs::path &from, const fs::path &to) {
    std::error_code error;
    fs::rename(from, to, error);
    return good(error, to);
  }

  /// A file system without locks has nobody wait.
  void lock() {
    held = ::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (held >= 0 && flock(held, LOCK_EX) != 0 && errno == EINTR) {
    }
  }

  /// What a compilation left that was killed behind renaming its trainer.
  bool finishKilled() {
    std::string id = buildIdOf(target / "trainer");
    return id.empty() || giveUsualNames(files_of_prefix + id);
  }

  void dropUnchanged() {
    for (const char *name : kEntries)
      if (waits(name) && keepTimes(partial / name, target / name))
        fs::remove_all(partial / name, ignored);
  }

  bool moveAll() {
    std::string early = earlyFolder();
    if (!moveFilesOfTrainer(early) || !replace("trainer.libs") || !replace("trainer") ||
        !giveUsualNames(early) || !replaceFolder("source") || !replaceFolder("plan"))
      return false;
    removeOld();
    return true;
  }

  /// The name of the folder where the new trainer finds its files before they have their place;
  /// empty where it needs none.
  std::string earlyFolder() const {
    if (!made.contains("trainer") ||
        llvm::none_of(kReadByTrainer, [&](const char *name) { return waits(name); }))
      return "";
    std::string id = buildIdOf((waits("trainer") ? partial : target) / "trainer");
    return id.empty() ? "" : files_of_prefix + id;
  }

  /// All files that the new trainer reads become visible to it, and to no other, by one renaming.
  bool moveFilesOfTrainer(const std::string &early) {
    if (early.empty())
      return llvm::all_of(kReadByTrainer, [&](const char *name) { return replace(name); });
    std::error_code error;
    fs::create_directory(partial / early, error);
    if (!good(error, partial / early))
      return false;
    for (const char *name : kReadByTrainer)
      if (waits(name) && !rename(partial / name, partial / early / name))
        return false;
    fs::remove_all(target / early, ignored); // what a killed compilation of the same left
    return rename(partial / early, target / early);
  }

  bool giveUsualNames(const std::string &early) {
    return early.empty() || llvm::all_of(kReadByTrainer, [&](const char *name) {
             return !isThere(target / early / name) || rename(target / early / name, target / name);
           });
  }

  /// Puts an entry in its place, in one moment where the file system can. What was there lies in
  /// `partial` then, a folder under `oldFolder`.
  bool replace(StringRef name) {
    fs::path from = partial / name.str(), to = target / name.str();
    if (!waits(name))
      return true;
    if ((!isFolder(from) && !isFolder(to)) || !isThere(to))
      return rename(from, to);
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0)
      return rename(from, oldFolder(name));
    return rename(to, oldFolder(name)) && rename(from, to);
  }

  fs::path oldFolder(StringRef name) const { return partial / (name.str() + ".old"); }

  /// A folder that somebody made in the old one, such as a build of the source, goes along.
  bool replaceFolder(StringRef name) {
    std::vector<fs::path> others;
    for (const fs::directory_entry &entry : fs::directory_iterator(target / name.str(), ignored))
      if (waits(name) && isFolder(entry.path()) &&
          !isThere(partial / name.str() / entry.path().filename()))
        others.push_back(entry.path().filename());
    return replace(name) && llvm::all_of(others, [&](const fs::path &other) {
             return rename(oldFolder(name) / other, target / name.str() / other);
           });
  }

  void removeOld() {
    std::vector<fs::path> old;
    for (const fs::directory_entry &entry : fs::directory_iterator(target, ignored))
      if (StringRef(entry.path().filename().native()).starts_with(files_of_prefix))
        old.push_back(entry.path());
    if (!made.contains("trainer.libs"))
      old.push_back(target / "trainer.libs");
    for (const fs::path &path : old)
      fs::remove_all(path, ignored);
  }

  const fs::path partial, target;
  llvm::StringSet<> made;
  std::string problem;
  std::error_code ignored;
  int held = -1; // the lock of the target
};

} // namespace

std::string exchangeOutput(const std::string &partial, const std::string &target) {
  return Exchange(partial, target).run();
}

std::string replacedEntryWith(const std::string &file, const std::string &target) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(file, error);
  for (const char *name : kEntries) {
    const fs::path entry = fs::weakly_canonical(fs::path(target) / name, error);
    if (std::mismatch(entry.begin(), entry.end(), inside.begin(), inside.end()).first ==
        entry.end())
      return name;
  }
  return "";
}

} // namespace trainc
