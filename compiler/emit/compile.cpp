// SPDX-License-Identifier: Apache-2.0
//
// Runs the host compiler, and nvcc on .cu files, on an emitted folder: one process a
// file, at most as many as there are cores, arguments passed as they are, no shell. They run
// in the folder and name its files without it: so objects do not depend on where it is, and
// ccache knows a file again that another folder held.
#include "compiler/emit/emit.h"
#include "compiler/emit/library.h"
#include "compiler/output/output_folder.h"
#include "compiler/output/write_file.h"
#include "compiler/plan/write_plan.h"
#include "compiler/process_group.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <spawn.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <tuple>
#include <unistd.h>

extern char **environ;

using namespace trainc;
namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;

/// This process's environment without what would have compilers write other bits, files beside the
/// sources, or messages that nobody here reads; folders named from here are found from the folder
/// that they run in.
Arguments compilerEnvironment(const TemporaryFolder &temporary) {
  const std::set<llvm::StringRef> dropped = {"LD_RUN_PATH",
                                             "DEPENDENCIES_OUTPUT",
                                             "SUNPRO_DEPENDENCIES",
                                             "CCACHE_NOHASHDIR",
                                             "NVCC_PREPEND_FLAGS",
                                             "NVCC_APPEND_FLAGS",
                                             "LC_ALL",
                                             "LANGUAGE"};
  const std::set<llvm::StringRef> places = {"CCACHE_DIR",        "CCACHE_TEMPDIR",
                                            "CCACHE_LOGFILE",    "CCACHE_DEBUGDIR",
                                            "CCACHE_CONFIGPATH", "TMPDIR"};
  Arguments result;
  for (char **entry = environ; *entry != nullptr; ++entry) {
    auto [name, value] = llvm::StringRef(*entry).split('=');
    bool isBesideObjects = name == "CCACHE_DEBUG" && std::getenv("CCACHE_DEBUGDIR") == nullptr;
    if (dropped.contains(name) || isBesideObjects ||
        (name == "TMPDIR" && !temporary.path().empty()))
      continue;
    bool isRelative = places.contains(name) && !value.empty() && !value.starts_with("/");
    result.push_back(isRelative ? name.str() + "=" + fs::absolute(value.str()).string() : *entry);
  }
  // There is no debug information, which alone would hold the folder; ccache takes that of nvcc's
  // for such.
  result.push_back("CCACHE_NOHASHDIR=1");
  result.push_back("LC_ALL=C.UTF-8");
  if (!temporary.path().empty())
    result.push_back("TMPDIR=" + temporary.path());
  return result;
}

std::vector<char *> pointersTo(const Arguments &strings) {
  std::vector<char *> pointers;
  for (const std::string &string : strings)
    pointers.push_back(const_cast<char *>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// A process and the file of its output, which is in memory: on a full disk the reason would be
/// lost.
struct Running {
  pid_t child = 0;
  int log = -1;
};

/// For what runs in the group, with no signal blocked, which this process does to wait for them.
class SpawnAttributes {
public:
  explicit SpawnAttributes(const ProcessGroup &group) {
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, group.id());
    posix_spawnattr_setflags(
        &attributes,
        static_cast<short>(POSIX_SPAWN_SETSIGMASK | (group.id() > 0 ? POSIX_SPAWN_SETPGROUP : 0)));
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes); }
  SpawnAttributes(const SpawnAttributes &) = delete;
  SpawnAttributes &operator=(const SpawnAttributes &) = delete;
  const posix_spawnattr_t *get() const { return &attributes; }

private:
  posix_spawnattr_t attributes;
};

/// Starts a program in `directory`. 0, or an errno value.
int start(const Arguments &arguments, const Arguments &environment, const std::string &directory,
          const ProcessGroup &group, Running &running) {
  running.log = memfd_create("compile.log", MFD_CLOEXEC);
  if (running.log < 0)
    return errno;
  std::vector<char *> argv = pointersTo(arguments), envp = pointersTo(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // In another group than the terminal's: reading from it would stop the program.
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, running.log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, running.log, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  const SpawnAttributes attributes(group);
  int error =
      posix_spawnp(&running.child, argv[0], &actions, attributes.get(), argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    close(running.log);
  return error;
}

/// The reason of a finished child in words; empty where it succeeded.
std::string describe(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return "";
  if (WIFEXITED(status))
    return "exit status " + std::to_string(WEXITSTATUS(status));
  return std::string("killed by signal ") + strsignal(WTERMSIG(status));
}

/// What the process wrote, which has ended; closes the file.
std::string readLog(const Running &running) {
  std::string text(std::max<off_t>(lseek(running.log, 0, SEEK_END), 0), '\0');
  text.resize(std::max<ssize_t>(pread(running.log, text.data(), text.size(), 0), 0));
  close(running.log);
  return text;
}

/// Up to `count` lines of what compilers say, from the first error on, indented; the last ones
/// where no line says that it is one.
std::string tellingLines(llvm::StringRef text, size_t count) {
  llvm::SmallVector<llvm::StringRef> lines;
  text.rtrim('\n').split(lines, '\n');
  auto isError = [](llvm::StringRef line) {
    const bool isLast = line.contains("collect2:"); // of a linker that has said why
    return (line.contains("error:") && !isLast) || line.contains("undefined reference");
  };
  const size_t first = llvm::find_if(lines, isError) - lines.begin();
  const size_t begin = first < lines.size() ? first : lines.size() - std::min(count, lines.size());
  std::string result;
  for (llvm::StringRef line : llvm::ArrayRef(lines).drop_front(begin).take_front(count))
    result += "\n  " + line.str();
  return result;
}

/// Where nvcc keeps what it makes on its way to an object. Names that it chooses itself have the
/// number of its process, and one of them stands in the object.
constexpr const char *kNvccFolder = "nvcc.kept";

/// The runtime's functions have a section each.
constexpr const char *kWithoutUnused = "-Wl,--gc-sections";

/// An object of the shared library alone, its list of symbols, and all objects of the archive in
/// one.
constexpr const char *kLibraryObject = "library.o", *kExports = "library.map",
                     *kWholeLibrary = "library.whole.o";

bool isCuda(const fs::path &source) { return source.extension() == ".cu"; }

/// What the compilers, which run in the emitted folder, find from there. A name without a folder
/// is a program on PATH.
std::string fromAnywhere(const std::string &path) {
  return path.find('/') == std::string::npos ? path : fs::absolute(path).string();
}

class HostCompiler {
public:
  explicit HostCompiler(const CompileOptions &given)
      : options(given), compiler(fromAnywhere(given.compiler)), nvcc(fromAnywhere(given.nvcc)) {
    if (auto found = llvm::sys::findProgramByName("ccache"))
      cache = *found;
  }

  bool run(std::string &message) {
    // ccache would say it in words of its own.
    auto found = llvm::sys::findProgramByName(compiler);
    if (std::error_code error =
            found ? llvm::sys::fs::access(*found, llvm::sys::fs::AccessMode::Execute)
                  : found.getError()) {
      message = "the host compiler '" + options.compiler + "' cannot be run: " + error.message();
      return false;
    }
    std::vector<Arguments> jobs = compilations();
    bool good = runAll(jobs);
    if (good && !options.output.empty())
      good = runAll({link(options.runPath)});
    if (good && !options.libraryName.empty())
      good = makeLibrary();
    if (good && options.linkAgainWith)
      if (const std::vector<std::string> runPath = options.linkAgainWith(); !runPath.empty())
        good = runAll({link(runPath)});
    for (const std::string &object : objects)
      fs::remove(fs::path(options.directory) / object);
    for (const char *made : {kExports, kWholeLibrary})
      fs::remove(fs::path(options.directory) / made);
    fs::remove_all(fs::path(options.directory) / kNvccFolder);
    if (good && !options.registers.empty())
      if (std::error_code error =
              writeFile(options.registers, registersJson(registerTable(deviceLog)))) {
        message = options.registers + ": " + error.message();
        return false;
      }
    if (good && !llvm::StringRef(log).contains("warning:"))
      return true;
    if (good) {
      message = "the host compiler warns" + writeLog();
      return true;
    }
    letInterruptEnd(); // the log would stay
    message = failed + " failed: " + reason + writeLog() + tellingLines(log, 12);
    return false;
  }

private:
  std::string logPath() const {
    return options.log.empty() ? options.directory + "/compile.log" : options.log;
  }

  bool isEmitted(const fs::path &source) const {
    return source.parent_path() == fs::path(options.directory);
  }
  bool hasLoops(const fs::path &source) const {
    return !isEmitted(source) ||
           !llvm::is_contained(filesWithoutLoops(), source.filename().string());
  }

  /// Sources that one process compiles: the last one, with the others included before it.
  using Unit = std::vector<fs::path>;

  static uintmax_t bytesOf(const Unit &unit) {
    uintmax_t bytes = 0;
    for (const fs::path &source : unit)
      bytes += fs::file_size(source);
    return bytes;
  }

  std::vector<Arguments> compilations() {
    std::vector<Unit> units;
    for (const std::string &source : options.sources)
      units.push_back({fs::path(options.directory) / source});
    if (units.empty()) {
      auto isSource = [](const fs::path &path) {
        return path.extension() == ".cpp" || isCuda(path);
      };
      std::vector<fs::path> folders = {options.directory};
      for (const std::string &folder : options.folders)
        folders.push_back(fs::path(options.directory) / folder);
      for (const fs::path &folder : folders)
        for (const auto &entry : fs::directory_iterator(folder))
          if (isSource(entry.path()))
            units.push_back({entry.path()});
      if (options.isMinimal)
        for (const std::vector<std::string> &sources : minimalLibraryUnits(options.directory))
          for (Unit &unit = units.emplace_back(); const std::string &source : sources)
            unit.push_back(fs::path(options.directory) / source);
    }
    // Files with loops first, then by size, so that the long ones do not start last.
    std::sort(units.begin(), units.end(), [this](const Unit &a, const Unit &b) {
      auto key = [this](const Unit &unit) {
        return std::tuple(hasLoops(unit.back()), bytesOf(unit), unit.back());
      };
      return key(a) > key(b);
    });
    std::vector<Arguments> jobs;
    if (llvm::any_of(units, [](const Unit &unit) { return isCuda(unit.back()); }))
      fs::create_directory(fs::path(options.directory) / kNvccFolder);
    for (const Unit &unit : units) {
      const fs::path &source = unit.back();
      const fs::path relative = source.lexically_relative(options.directory);
      bool inside = !relative.empty() && *relative.begin() != "..";
      // A user's files may have the names of others.
      objects.push_back(isEmitted(source) ? source.stem().string() + ".o"
                                          : std::to_string(objects.size()) + "." +
                                                source.filename().string() + ".o");
      Arguments arguments = isCuda(source) ? nvccFlagsFor() : hostFlagsFor(source);
      arguments.insert(arguments.end(), {"-I", "."});
      for (const std::string &include : options.includes)
        arguments.insert(arguments.end(), {"-I", fs::absolute(include).string()});
      for (const fs::path &before : llvm::ArrayRef(unit).drop_back())
        arguments.insert(arguments.end(),
                         {"-include", before.lexically_relative(options.directory).string()});
      std::string name = inside ? relative.string() : fs::absolute(source).string();
      arguments.insert(arguments.end(), {"-c", name, "-o", objects.back()});
      jobs.push_back(std::move(arguments));
    }
    return jobs;
  }

  Arguments hostFlagsFor(const fs::path &source) const {
    Arguments arguments = {compiler, "-std=c++20", "-march=" + options.march};
    llvm::append_range(arguments, hostFlags());
    if (options.warningsAreErrors)
      arguments.push_back("-Werror");
    if (options.isMinimal) {
      llvm::append_range(arguments, minimalLibraryFlags());
      if (isEmitted(source) && hasLoops(source))
        arguments.push_back(options.optimization);
      arguments.insert(arguments.end(), {"-I", "runtime/minimal/single_thread"});
      return arguments;
    }
    if (hasLoops(source))
      arguments.insert(arguments.end(), {options.optimization, "-fopenmp"});
    else
      llvm::append_range(arguments, flagsWithoutLoops());
    if (options.shared || !options.libraryName.empty())
      arguments.insert(arguments.end(), {"-fPIC", "-fno-gnu-unique"});
    return arguments;
  }

  Arguments nvccFlagsFor() const {
    Arguments arguments = {nvcc, "-ccbin", compiler,     "--threads",
                           "0",  "--keep", "--keep-dir", kNvccFolder};
    llvm::append_range(arguments, nvccFlags());
    if (!options.libraryName.empty())
      arguments.push_back("-Xcompiler=-fPIC,-fno-gnu-unique");
    if (options.warningsAreErrors)
      arguments.insert(arguments.end(), {"-Werror", "all-warnings"});
    arguments.insert(arguments.end(), {"-Xptxas", "-v"});
    for (const std::string &number : options.cudaArchitectures)
      llvm::append_values(arguments, "-gencode", "arch=compute_" + number + ",code=sm_" + number);
    const std::string &newest = options.cudaArchitectures.back();
    llvm::append_values(arguments, "-gencode",
                        "arch=compute_" + newest + ",code=compute_" + newest);
    return arguments;
  }

  /// The command that links; `runPath` says where the program looks for libraries.
  Arguments link(const std::vector<std::string> &runPath) const {
    Arguments arguments = {compiler, "-fopenmp", "-o", fs::absolute(options.output).string()};
    // By its id a trainer knows the files that were made with it (runtime/files/own_files.h).
    arguments.insert(arguments.end(), {"-Wl,--build-id", kWithoutUnused});
    if (options.shared)
      arguments.push_back("-shared");
    for (const std::string &object : objects)
      if (object != kLibraryObject)
        arguments.push_back(object);
    llvm::append_range(arguments, options.linkArguments);
    llvm::append_range(arguments, runPath);
    return arguments;
  }

  /// A shared library, and an archive of one object, so that a program can have several models: all
  /// that is not the interface is local to it.
  bool makeLibrary() {
    const std::string base = fs::absolute(options.libraryFolder + "/lib" + options.libraryName),
                      functions = options.libraryName + "_*";
    if (writeFile(options.directory + "/" + kExports,
                  "{ global: " + functions + "; local: *; };\n"))
      return fail("the linker", std::string("cannot write ") + kExports);
    Arguments shared = {compiler, "-shared", "-o", base + ".so"};
    if (options.isMinimal)
      llvm::append_range(shared, minimalLibraryLinkFlags());
    else
      shared.push_back("-fopenmp");
    shared.insert(shared.end(), {"-Wl,--build-id", kWithoutUnused, "-Wl,-z,defs",
                                 std::string("-Wl,--version-script=") + kExports,
                                 "-Wl,-soname,lib" + options.libraryName + ".so"});
    llvm::append_range(shared, objects);
    llvm::append_range(shared, options.linkArguments);
    llvm::append_range(shared, options.runPath);
    Arguments whole = {compiler, "-r",         "-nostdlib", "-Wl,--force-group-allocation",
                       "-o",     kWholeLibrary};
    llvm::append_range(whole, objects);
    for (const std::string &argument : options.linkArguments)
      if (llvm::StringRef(argument).ends_with(".a") || llvm::StringRef(argument).contains("-group"))
        whole.push_back(argument);
    whole.push_back(kWithoutUnused); // what is kept begins at the interface's functions
    for (const std::string &function : interfaceFunctions())
      whole.push_back("-Wl,--undefined=" + function);
    fs::remove(base + ".a"); // or the archiver adds to it
    return runAll({shared, whole}) &&
           runAll({{options.toolPrefix + "objcopy", "--strip-unneeded", "--wildcard",
                    "--keep-global-symbol=" + functions, kWholeLibrary}}) &&
           runAll({{options.toolPrefix + "ar", "rcsD", base + ".a", kWholeLibrary}});
  }

  /// What library.cpp defines: NAME_... before a parenthesis, at the beginning of a line's
  /// second word.
  std::vector<std::string> interfaceFunctions() const {
    std::vector<std::string> names;
    std::ifstream file(fs::path(options.directory) / "library.cpp");
    for (std::string line; std::getline(file, line);) {
      llvm::StringRef name = llvm::StringRef(line).take_until([](char c) { return c == '('; });
      name = name.substr(name.find_last_of(" *") + 1);
      if (line.find('(') != line.npos && !llvm::StringRef(line).starts_with(" ") &&
          name.starts_with(options.libraryName + "_"))
        names.push_back(name.str());
    }
    return names;
  }

  bool fail(const std::string &program, const std::string &why) {
    failed = program;
    reason = why;
    return false;
  }

  bool runAll(const std::vector<Arguments> &jobs) {
    const size_t width = std::max(1u, std::thread::hardware_concurrency());
    std::map<size_t, Running> running; // by number of the job: in the order of their starts
    bool good = true;
    size_t next = 0;
    while (next < jobs.size() || !running.empty()) {
      if (good && next < jobs.size() && running.size() < width) {
        Running started;
        const Arguments command = throughCache(jobs[next]);
        bool isCached = command != jobs[next];
        int error = start(command, environment, options.directory, group, started);
        if (error != 0 && isCached) {
          cache.clear(); // no program, as it turns out
        } else if (error != 0) {
          good = false;
          failed = nameOf(jobs[next]);
          reason = "cannot run '" + jobs[next][0] + "': " + std::strerror(error);
        } else {
          if (isCached)
            cached.insert(next);
          running[next++] = started;
        }
        continue;
      }
      if (running.empty())
        break;
      good &= reap(running, jobs);
    }
    return good;
  }

  /// Waits for the compilation that was started first; others run on meanwhile.
  bool reap(std::map<size_t, Running> &running, const std::vector<Arguments> &jobs) {
    auto [job, process] = *running.begin();
    running.erase(running.begin());
    int status = 0;
    while (waitpid(process.child, &status, 0) < 0 && errno == EINTR) {
    }
    std::string problem = describe(status), text = readLog(process);
    if (cached.erase(job) != 0 && !problem.empty()) {
      // The cache may be what failed: in a home that cannot be written, or another program of the
      // name. What the compiler itself says then comes again.
      cache.clear();
      if (Running again; start(jobs[job], environment, options.directory, group, again) == 0) {
        running[job] = again;
        return true;
      }
    }
    for (const std::string &argument : jobs[job])
      log += argument + " ";
    log += "\n" + text;
    if (jobs[job][0] == nvcc)
      deviceLog += text;
    if (!problem.empty() && reason.empty()) {
      reason = problem;
      failed = nameOf(jobs[job]);
    }
    return problem.empty();
  }

  /// The command by way of ccache where that is there; linking is nothing that it keeps.
  Arguments throughCache(const Arguments &job) const {
    Arguments command = job;
    if (!cache.empty() && llvm::is_contained(job, "-c"))
      command.insert(command.begin(), cache);
    return command;
  }

  std::string nameOf(const Arguments &job) const {
    return job[0] == nvcc ? "nvcc" : "the host compiler";
  }

  /// A line that names it; empty where it cannot be written, and the last lines are all there is.
  std::string writeLog() const { return writeFile(logPath(), log) ? "" : "\n  log: " + logPath(); }

  const CompileOptions &options;
  const std::string compiler, nvcc;
  const TemporaryFolder temporary;
  const Arguments environment = compilerEnvironment(temporary);
  const ProcessGroup group{temporary.path()};
  std::string cache;                // ccache, where it is
  std::set<size_t> cached;          // jobs that run through it
  std::vector<std::string> objects; // in the folder
  std::string log, deviceLog, reason, failed;
};

} // namespace

bool trainc::compileSources(const CompileOptions &options, std::string &message) {
  return HostCompiler(options).run(message);
}
