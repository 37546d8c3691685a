// SPDX-License-Identifier: Apache-2.0
//
// The output folder, complete or untouched: everything is made in a sibling folder and moved in
// place at the end. An interrupt removes what was begun, the next compilation what a kill left.
#pragma once

#include "compiler/output/folder_lock.h"
#include "compiler/report.h"
#include <string>

namespace trainc {

/// Waits for an interrupt that has ended a child process of this one to end this one too. A
/// terminal sends it to both at once, and the child's end is then nothing to report.
void letInterruptEnd();

/// A folder in the system's temporary one, for the files of compilers on their way: now and then
/// they leave one where they are told to end. It goes with this object, or by an interrupt.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const std::string &path() const { return folder; } // empty: it could not be made

private:
  std::string folder;
};

class OutputFolder {
public:
  /// Nothing is created before `begin`.
  explicit OutputFolder(std::string path);
  ~OutputFolder(); // removes what was not published

  /// Also removes what a compilation into the same folder left that was killed. Fails where one of
  /// `inputs`, files that the output is made of, lies in what will be replaced.
  llvm::LogicalResult begin(llvm::ArrayRef<std::string> inputs, Report &report);
  /// Makes the folder itself where `file` is to lie in it.
  llvm::LogicalResult makeRoomFor(llvm::StringRef file, Report &report);
  /// The folder itself, as `publish` leaves it.
  const std::string &path() const { return target; }
  /// Path of an entry while it is being made.
  std::string entry(llvm::StringRef name) const;
  llvm::LogicalResult makeFolder(llvm::StringRef name, Report &report);
  llvm::LogicalResult writeText(llvm::StringRef name, llvm::StringRef text, Report &report);

  /// Moves the entries into the target folder, in place of those of an earlier compilation, which a
  /// list in the folder names (`.made-by-trainc`), and leaves everything else there alone, in the
  /// folders too that it writes: where another's file bears the name of an entry, nothing is moved
  /// and it fails. A file whose content is the same keeps its time stamp. Another
  /// compilation that publishes there waits.
  ///
  /// Whenever this process is killed, the trainer in the folder is the old one with the old files
  /// or the new one with the new files: renaming the trainer is the one moment that decides. What
  /// the new one reads lies before that in folders that no other looks into: with its build id in
  /// the name (runtime/files/own_files.h), its libraries with a digest of themselves. The source
  /// and the plans follow, file by file.
  llvm::LogicalResult publish(Report &report);

private:
  llvm::LogicalResult makePartial(Report &report);
  void warnOfMissingLocks(const FolderLock &lock, Report &report) const;

  std::string target;
  std::string partial; // empty before begin and after publish
  FolderLock lock;     // of `partial`, while this process lives
};

} // namespace trainc
