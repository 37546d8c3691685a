// SPDX-License-Identifier: Apache-2.0
//
// CMakeLists.txt of an emitted folder: builds the trainer where there is a
// compiler, MPI and oneDNN, and nothing of the compiler's own.
#include "compiler/emit/step_program.h"
#include "llvm/ADT/StringExtras.h"

using namespace trainc;

llvm::ArrayRef<llvm::StringRef> trainc::filesWithoutLoops() {
  static const llvm::StringRef files[] = {"constants.cpp", "step.cpp", "trainer.cpp"};
  return files;
}

llvm::ArrayRef<llvm::StringRef> trainc::flagsWithoutLoops() {
  static const llvm::StringRef flags[] = {"-Og", "-fno-openmp"};
  return flags;
}

std::string trainc::buildFile(const ProgramTables &tables) {
  std::string march;
  for (char c : tables.march)
    if (llvm::isAlnum(c) || llvm::StringRef("-_.+").contains(c))
      march += c;
  return R"(# Builds the trainer from this folder alone:
#   cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build
cmake_minimum_required(VERSION 3.16)
project(trainer LANGUAGES CXX)

set(MARCH ")" +
         march + R"(" CACHE STRING "instruction set; another one may change the bits of results")
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(OpenMP REQUIRED)
find_library(DNNL dnnl REQUIRED)

file(GLOB runtime runtime/*.cpp runtime/cpu/*.cpp)
file(GLOB emitted *.cpp)
add_executable(trainer ${emitted} ${runtime})
target_compile_features(trainer PRIVATE cxx_std_20)
set_target_properties(trainer PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(trainer PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
# Bits must not depend on how a loop is vectorised: no contraction, no -ffast-math.
target_compile_options(trainer PRIVATE -O3 -march=${MARCH} -ffp-contract=off -fno-math-errno
  -fno-trapping-math -Wall -Wextra)
set_source_files_properties()" +
         llvm::join(filesWithoutLoops(), " ") + " PROPERTIES COMPILE_OPTIONS \"" +
         llvm::join(flagsWithoutLoops(), ";") + R"(")
target_link_libraries(trainer PRIVATE MPI::MPI_CXX OpenMP::OpenMP_CXX ${DNNL})
)";
}
