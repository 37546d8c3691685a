// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/library.h"
#include "compiler/emit/emit.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

std::string trainc::libraryName(llvm::StringRef modelName) {
  std::string name = "model_";
  for (char c : modelName)
    name += llvm::isAlnum(c) ? c : '_';
  return name;
}

std::string trainc::libraryText(llvm::StringRef text, llvm::StringRef name) {
  std::string result;
  const std::string upper = name.upper();
  using Replacements = std::vector<std::pair<llvm::StringRef, llvm::StringRef>>;
  // In forwards.inc the runtime's own names stay.
  const Replacements words = text.contains("@model@")
                                 ? Replacements{{"@model@", name}}
                                 : Replacements{{"trainc_model", name}, {"TRAINC_MODEL", upper}};
  while (!text.empty()) {
    auto found =
        llvm::find_if(words, [&](const auto &word) { return text.starts_with(word.first); });
    const bool isWord = found != words.end();
    result += isWord ? found->second : text.take_front();
    text = text.drop_front(isWord ? found->first.size() : 1);
  }
  return result;
}

std::string trainc::libraryBuildText(llvm::StringRef name) {
  return ("set(LIBRARY " + name + ")\n").str() +
         R"(get_target_property(sources trainer SOURCES)
add_library(${LIBRARY} SHARED ${sources} library.cpp)
foreach(property CXX_STANDARD CXX_EXTENSIONS COMPILE_FEATURES COMPILE_OPTIONS INCLUDE_DIRECTORIES LINK_LIBRARIES
    UNITY_BUILD UNITY_BUILD_MODE)
  get_target_property(value trainer ${property})
  if(NOT value MATCHES "NOTFOUND$")
    set_property(TARGET ${LIBRARY} PROPERTY ${property} "${value}")
  endif()
endforeach()
target_compile_options(${LIBRARY} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
set_target_properties(${LIBRARY} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
# All that is not the interface is local.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/library.map "{ global: ${LIBRARY}_*; local: *; };")
target_link_options(${LIBRARY} PRIVATE -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/library.map)
)";
}

static constexpr const char *kMinimalSources = "runtime/minimal/sources.txt";

std::vector<std::vector<std::string>> trainc::minimalLibraryUnits(llvm::StringRef sourceFolder) {
  auto list = llvm::MemoryBuffer::getFile(sourceFolder + "/" + kMinimalSources);
  if (!list)
    return {};
  llvm::SmallVector<llvm::StringRef> lines;
  (*list)->getBuffer().split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::vector<std::vector<std::string>> units(1); // the first one: all without large loops
  for (llvm::StringRef line : lines)
    (line.starts_with("cpu/") ? units.emplace_back() : units.front())
        .push_back(("runtime/" + line).str());
  llvm::erase_if(units, [](const std::vector<std::string> &unit) { return unit.empty(); });
  return units;
}

// What no function of the interface reaches is left out, with all that it would need. Some
// variables serve pragmas of OpenMP alone.
llvm::ArrayRef<llvm::StringRef> trainc::minimalLibraryFlags() {
  static const llvm::StringRef flags[] = {"-O2",
                                          "-ftree-vectorize",
                                          "-fPIC",
                                          "-fno-openmp",
                                          "-Wno-unknown-pragmas",
                                          "-Wno-unused-variable",
                                          "-Wno-unused-parameter",
                                          "-fvisibility=hidden",
                                          "-fvisibility-inlines-hidden",
                                          "-ffunction-sections",
                                          "-fdata-sections",
                                          "-fno-gnu-unique"};
  return flags;
}

llvm::ArrayRef<llvm::StringRef> trainc::minimalLibraryLinkFlags() {
  static const llvm::StringRef flags[] = {"-static-libstdc++", "-static-libgcc",
                                          "-Wl,--gc-sections", "-Wl,--as-needed", "-s"};
  return flags;
}

std::string trainc::minimalLibraryBuildText(llvm::StringRef name, llvm::StringRef march) {
  return ("# Builds the library from this folder alone, for any processor:\n"
          "#   cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build\n"
          "cmake_minimum_required(VERSION 3.18)\nproject(" +
          name + " CXX)\nset(MARCH \"" + march +
          "\" CACHE STRING \"instruction set\")\nfile(STRINGS " + kMinimalSources +
          R"( runtime)
list(TRANSFORM runtime PREPEND runtime/)
set(in_one_unit ${runtime})
list(FILTER in_one_unit EXCLUDE REGEX "^runtime/cpu/")
file(GLOB_RECURSE operators operators/*.cpp)
add_library(${PROJECT_NAME} SHARED constants.cpp kernels.cpp step.cpp trainer.cpp library.cpp ${operators} ${runtime})
set_target_properties(${PROJECT_NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
set_source_files_properties(${in_one_unit} PROPERTIES UNITY_GROUP runtime)
target_compile_features(${PROJECT_NAME} PRIVATE cxx_std_20)
target_include_directories(${PROJECT_NAME} PRIVATE runtime/minimal/single_thread .)
target_compile_options(${PROJECT_NAME} PRIVATE -march=${MARCH} )" +
          llvm::join(hostFlags(), " ") + " " + llvm::join(minimalLibraryFlags(), " ") +
          R"()
set_source_files_properties(kernels.cpp PROPERTIES COMPILE_OPTIONS -O3)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/library.map "{ global: ${PROJECT_NAME}_*; local: *; };")
target_link_options(${PROJECT_NAME} PRIVATE -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/library.map
  )" + llvm::join(minimalLibraryLinkFlags(), " ") +
          ")\n")
      .str();
}

std::string trainc::pkgConfigText(llvm::StringRef name, llvm::StringRef modelName,
                                  llvm::StringRef libraries) {
  return ("prefix=${pcfiledir}\n\nName: " + name + "\nDescription: the model " + modelName +
          ", to be trained\nVersion: 1\nCflags: -I${prefix}\nLibs: -L${prefix} -l" + name +
          "\nLibs.private: " + libraries + "\n")
      .str();
}
