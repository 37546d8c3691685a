// SPDX-License-Identifier: Apache-2.0
//
// What a compilation made takes the place of what an earlier one left, file by file: folders may
// hold what others put there. A process can be killed between any two renamings, so their order is
// all: the files of the new trainer, in folders that only it looks into; the trainer; then its
// files' usual names, the source and the plans. What trainc made is known by a list, which at every
// moment names all of it.
#include "compiler/output/output_exchange.h"
#include "compiler/output/write_file.h"
#include "compiler/report.h"
#include "runtime/files/own_files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/BuildID.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cstring>
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

/// The list of what trainc made: a path a line, those of folders with a slash at the end, and a
/// last line that says that the others are trainc's.
constexpr const char *kList = ".made-by-trainc";

/// What a compilation may make directly in the folder.
constexpr const char *kEntries[] = {"trainer",
                                    "trainer.libs",
                                    "library",
                                    "source",
                                    "plan",
                                    "parameters.safetensors",
                                    "export_template.onnx",
                                    kList};

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
  std::error_code ignored;
  if (!fs::is_regular_file(program, ignored)) // a pipe would be read for ever
    return "";
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

/// What stands after the paths: a digest of them.
std::string lastLineFor(StringRef paths) {
  auto bytes = ArrayRef(reinterpret_cast<const uint8_t *>(paths.data()), paths.size());
  return "# do not edit: " + utohexstr(xxh3_64bits(bytes), /*LowerCase=*/true) + "\n";
}

/// Nothing where it is another text than trainc wrote: what it names may be the user's.
std::optional<Paths> readList(const fs::path &file) {
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(file, ignored))) // a pipe would be read for ever
    return std::nullopt;
  auto text = MemoryBuffer::getFile(file.string());
  if (!text)
    return std::nullopt;
  StringRef paths = (*text)->getBuffer();
  size_t last = paths.rfind('\n', paths.size() - 1) + 1; // 0 where there is no other line
  StringRef lastLine = paths.drop_front(last);
  paths = paths.take_front(last);
  if (lastLine != lastLineFor(paths))
    return std::nullopt;
  SmallVector<StringRef> lines;
  paths.split(lines, '\n', -1, /*KeepEmpty=*/false);
  Paths result;
  for (StringRef line : lines)
    result.insert(line.str());
  return result;
}

std::error_code writeList(const fs::path &file, const Paths &paths) {
  std::string lines;
  for (const std::string &path : paths)
    lines += path + '\n';
  return writeFile(file.string(), lines + lastLineFor(lines));
}

/// Moves what one compilation made over what another left. Functions are false where they fail,
/// which `problem` explains.
class Exchange {
public:
  Exchange(fs::path partial, fs::path target)
      : partial(std::move(partial)), target(std::move(target)) {}

  std::optional<OutputProblem> run() {
    collect(partial, "", made);
    const std::string early = earlyFolder();
    if (!readKnown() || !hasRoom() || !announce(early) || !makeFolders() || !finishKilled())
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

  bool fails(const fs::path &path, const Twine &why, const std::string &advice = kAnotherFolder) {
    problem = {path.string(), why.str(), advice};
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

  bool readKnown() {
    if (!isThere(target / kList))
      return true;
    if (access((target / kList).c_str(), R_OK) != 0)
      return fails(target / kList, Twine("cannot be read: ") + std::strerror(errno));
    std::optional<Paths> list = readList(target / kList);
    if (list)
      known = std::move(*list);
    return list || fails(target / kList,
                         "is not as trainc wrote it, so that nothing says which files here are "
                         "yours",
                         kAnotherFolder + ", or the command after removing it with the files of "
                                          "that output");
  }

  /// Finds before anything is moved what would end the exchange in its middle, and what is not
  /// trainc's to replace.
  bool hasRoom() {
    if (!canHold(target))
      return false;
    std::vector<std::string> users;
    for (const std::string &name : made) {
      const fs::path place = target / name;
      if (!namesFolder(name) && !known.count(name) && isThere(place) && !isFolder(place) &&
          !sameContent(partial / name, place))
        users.push_back(name);
      if (!namesFolder(name) && isFolder(place))
        return fails(place, "is a folder, where trainc writes a file");
      const fs::path folder = target / StringRef(name).rtrim('/').str();
      if (!namesFolder(name) || !isThere(folder))
        continue;
      if (!isFolder(folder))
        return fails(folder, "is not a folder, where trainc writes one");
      if (!canHold(folder))
        return false;
    }
    return users.empty() ||
           fails(target, quotedList(users) + " would be replaced, which trainc did not make",
                 kAnotherFolder + ", or the command after moving them away");
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
    for (const std::string &name : made) // a folder that somebody else made stays his
      if (namesFolder(name) && !known.count(name) && isThere(target / name)) {
        all.erase(name);
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

  /// What a compilation left that was killed after renaming its trainer.
  bool finishKilled() {
    std::string id = buildIdOf(target / "trainer");
    return id.empty() || giveUsualNames(files_of_prefix + id);
  }

  void dropUnchanged() {
    for (const std::string &name : made)
      if (!namesFolder(name) && sameContent(partial / name, target / name) &&
          giveMode(partial / name, target / name))
        fs::remove(partial / name, ignored);
  }

  /// Gives a file the mode that another has, a trainer's among them; false where it cannot.
  static bool giveMode(const fs::path &from, const fs::path &to) {
    std::error_code error;
    const fs::perms wanted = fs::status(from, error).permissions();
    if (!error && fs::status(to, error).permissions() != wanted)
      fs::permissions(to, wanted, error);
    return !error;
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
  static inline const std::string kAnotherFolder = "another folder with -o";

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

bool isWithin(const std::string &file, const std::string &folder) {
  auto resolved = [](const std::string &path) { // empty: no such path can be
    std::error_code error;
    const fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
    return whole.has_filename() ? whole : whole.parent_path(); // no slash at the end
  };
  const fs::path inside = resolved(file), outside = resolved(folder);
  return !outside.empty() &&
         std::mismatch(outside.begin(), outside.end(), inside.begin(), inside.end()).first ==
             outside.end();
}

std::string replacedEntryWith(const std::string &file, const std::string &target) {
  for (const char *name : kEntries)
    if (isWithin(file, (fs::path(target) / name).string()))
      return name;
  return "";
}

} // namespace trainc
