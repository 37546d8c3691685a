// SPDX-License-Identifier: Apache-2.0
//
// What a compilation made takes the place of what an earlier one left, file by file: folders may
// hold what others put there. A process can be killed between any two renamings, so their order is
// all: the files of the new trainer, in folders that only it looks into; the trainer; then its
// files' usual names, the source and the plans. What trainc made is known by a list, which at every
// moment names all of it.
#include "compiler/output_exchange.h"
#include "runtime/own_files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/BuildID.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
namespace fs = std::filesystem;

namespace trainc {

namespace {

constexpr const char *kReadByTrainer[] = {"parameters.safetensors", "export_template.onnx"};

/// What a compilation may make directly in the folder.
constexpr const char *kEntries[] = {"trainer", "trainer.libs",           "source",
                                    "plan",    "parameters.safetensors", "export_template.onnx"};

/// The list of what trainc made: a path a line, those of folders with a slash at the end.
constexpr const char *kList = ".made-by-trainc";

/// Of files and folders, so sorted that a folder stands before what it holds.
using Paths = std::set<std::string>;

bool isFolder(const fs::path &path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool namesFolder(StringRef path) { return path.ends_with("/"); }

bool sameContent(const fs::path &one, const fs::path &other) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(other, error)) ||
      fs::file_size(one, error) != fs::file_size(other, error) || error)
    return false;
  auto map = [](const fs::path &path) {
    return MemoryBuffer::getFile(path.string(), /*IsText=*/false,
                                 /*RequiresNullTerminator=*/false);
  };
  auto first = map(one), second = map(other);
  return first && second && (*first)->getBuffer() == (*second)->getBuffer();
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

void collect(const fs::path &folder, const std::string &name, Paths &paths) {
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder / name, ignored)) {
    std::string path = name + entry.path().filename().string();
    if (isFolder(entry.path())) {
      paths.insert(path + "/");
      collect(folder, path + "/", paths);
    } else {
      paths.insert(path);
    }
  }
}

/// Leaves out lines that trainc did not write: none of them leads out of the folder.
Paths readList(const fs::path &file) {
  Paths paths;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) // a pipe would be read for ever
    return paths;
  auto text = MemoryBuffer::getFile(file.string());
  if (!text)
    return paths;
  SmallVector<StringRef> lines;
  (*text)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    SmallVector<StringRef> parts;
    line.split(parts, '/');
    bool leadsOut = line.starts_with("/") || is_contained(parts, "..");
    if (!leadsOut)
      paths.insert(line.str());
  }
  return paths;
}

std::error_code writeList(const fs::path &file, const Paths &paths) {
  std::error_code error;
  raw_fd_ostream stream(file.string(), error);
  if (error)
    return error;
  for (const std::string &path : paths)
    stream << path << '\n';
  stream.close();
  error = stream.error();
  stream.clear_error();
  return error;
}

/// Moves what one compilation made over what another left. Functions are false where they fail,
/// which `problem` explains.
class Exchange {
public:
  Exchange(fs::path partial, fs::path target)
      : partial(std::move(partial)), target(std::move(target)) {}

  std::optional<OutputProblem> run() {
    collect(partial, "", made);
    known = readList(target / kList);
    const std::string early = earlyFolder();
    if (!hasRoom() || !announce(early) || !makeFolders() || !finishKilled())
      return problem;
    dropUnchanged();
    if (lost.count("trainer"))
      fs::remove(target / "trainer", ignored); // nothing that comes now belongs to it
    if (!moveAll(early))
      return problem;
    removeLost();
    return replaceList(kFinalList) ? std::nullopt : problem;
  }

private:
  bool waits(const std::string &name) const { return isThere(partial / name); }

  bool fails(const fs::path &path, const Twine &why) {
    problem = {path.string(), why.str()};
    return false;
  }

  bool good(const std::error_code &error, const fs::path &path) {
    return !error || fails(path, error.message());
  }

  bool rename(const fs::path &from, const fs::path &to) {
    std::error_code error;
    fs::rename(from, to, error);
    return good(error, to);
  }

  bool replace(const std::string &name) {
    return !waits(name) || rename(partial / name, target / name);
  }

  /// Finds before anything is moved what would end the exchange in its middle.
  bool hasRoom() {
    if (!canHold(target))
      return false;
    for (const std::string &name : made) {
      const fs::path place = target / name;
      if (!namesFolder(name) && isFolder(place))
        return fails(place, "is a folder, where trainc writes a file");
      const fs::path folder = target / StringRef(name).rtrim('/').str();
      if (!namesFolder(name) || !isThere(folder))
        continue;
      if (!isFolder(folder))
        return fails(folder, "is no folder, where trainc writes one");
      if (!canHold(folder))
        return false;
    }
    return true;
  }

  /// Whether files of `partial` can be renamed into the folder.
  bool canHold(const fs::path &folder) {
    if (access(folder.c_str(), W_OK | X_OK) != 0)
      return good(std::error_code(errno, std::generic_category()), folder);
    return onOneMount(partial, folder) || fails(folder, "is a file system of its own");
  }

  /// Writes down what this compilation makes, besides what earlier ones did, before it begins.
  bool announce(const std::string &early) {
    Paths all = known;
    all.insert(made.begin(), made.end());
    if (!early.empty()) {
      all.insert(early + "/");
      for (const char *name : kReadByTrainer)
        all.insert(early + "/" + name);
    }
    for (const std::string &name : made) // what somebody else made is his until it is replaced
      if (!known.count(name) && isThere(target / name)) {
        all.erase(name);
        if (namesFolder(name))
          notOurs.insert(name);
      }
    lost = all;
    for (const std::string &name : made)
      lost.erase(name);
    // Both now, while a full disk does no harm.
    if (!writeListOf(all, kList) || !writeListOf(finalList(), kFinalList))
      return false;
    if (sameContent(partial / kFinalList, target / kList)) // its time stamp too, in the end
      fs::last_write_time(partial / kFinalList, fs::last_write_time(target / kList, ignored),
                          ignored);
    return replaceList(kList);
  }

  Paths finalList() const {
    Paths all = made;
    for (const std::string &name : notOurs)
      all.erase(name);
    return all;
  }

  bool writeListOf(const Paths &paths, const char *name) {
    return good(writeList(partial / name, paths), target / kList);
  }

  bool replaceList(const char *name) {
    return sameContent(partial / name, target / kList) || rename(partial / name, target / kList);
  }

  /// What a compilation left that was killed behind renaming its trainer.
  bool finishKilled() {
    std::string id = buildIdOf(target / "trainer");
    return id.empty() || giveUsualNames(files_of_prefix + id);
  }

  void dropUnchanged() {
    for (const std::string &name : made)
      if (!namesFolder(name) && sameContent(partial / name, target / name))
        fs::remove(partial / name, ignored);
  }

  bool makeFolders() {
    for (const std::string &name : made) {
      std::error_code error;
      if (namesFolder(name))
        fs::create_directory(target / name, error);
      if (!good(error, target / name))
        return false;
    }
    return true;
  }

  bool moveAll(const std::string &early) {
    auto replaceUnder = [&](StringRef folder) {
      return llvm::all_of(made, [&](const std::string &name) {
        return namesFolder(name) || !StringRef(name).starts_with(folder) || replace(name);
      });
    };
    // Libraries lie in a folder named after their content.
    return moveFilesOfTrainer(early) && replaceUnder("trainer.libs/") && replace("trainer") &&
           giveUsualNames(early) && replaceUnder("");
  }

  /// The name of the folder where the new trainer finds its files before they have their place;
  /// empty where it needs none.
  std::string earlyFolder() const {
    std::string id = made.count("trainer") ? buildIdOf(partial / "trainer") : "";
    return id.empty() ? "" : files_of_prefix + id;
  }

  /// All files that the new trainer reads become visible to it, and to no other, by one renaming.
  bool moveFilesOfTrainer(const std::string &early) {
    if (early.empty())
      return true;
    fs::remove_all(target / early, ignored); // what a killed compilation of the same left
    if (llvm::none_of(kReadByTrainer, [&](const char *name) { return waits(name); }))
      return true;
    std::error_code error;
    fs::create_directory(partial / early, error);
    if (!good(error, partial / early))
      return false;
    for (const char *name : kReadByTrainer)
      if (waits(name) && !rename(partial / name, partial / early / name))
        return false;
    return rename(partial / early, target / early);
  }

  bool giveUsualNames(const std::string &early) {
    return early.empty() || llvm::all_of(kReadByTrainer, [&](const char *name) {
             return !isThere(target / early / name) || rename(target / early / name, target / name);
           });
  }

  /// What earlier compilations made and this one did not; a folder only where nothing else is in
  /// it.
  void removeLost() {
    for (const std::string &name : llvm::reverse(lost))
      if (isOfFolders(name) &&
          namesFolder(name) == isFolder(target / StringRef(name).rtrim('/').str()))
        fs::remove(target / name, ignored);
  }

  /// Whether the path leads through folders and no link.
  bool isOfFolders(StringRef name) const {
    for (size_t end = name.find('/'); end < name.size() - 1; end = name.find('/', end + 1))
      if (!isFolder(target / name.take_front(end).str()))
        return false;
    return true;
  }

  static constexpr const char *kFinalList = ".made-by-trainc.final";

  const fs::path partial, target;
  Paths made, known, lost, notOurs;
  std::optional<OutputProblem> problem;
  std::error_code ignored;
};

} // namespace

bool onOneMount(const std::string &one, const std::string &other) {
  struct statx first, second;
  auto look = [](const std::string &path, struct statx &status) {
    return statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &status) == 0;
  };
  return !look(one, first) || !look(other, second) ||
         (first.stx_dev_major == second.stx_dev_major &&
          first.stx_dev_minor == second.stx_dev_minor && first.stx_mnt_id == second.stx_mnt_id);
}

std::optional<OutputProblem> exchangeOutput(const std::string &partial, const std::string &target) {
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
