// SPDX-License-Identifier: Apache-2.0
//
// CMakeLists.txt of an emitted folder: builds the trainer where there is a compiler, MPI's and
// JSON for Modern C++'s headers and what the target computes with, and nothing of the compiler's
// own.
#include "compiler/emit/step_program.h"
#include "llvm/ADT/StringExtras.h"

using namespace trainc;

llvm::ArrayRef<llvm::StringRef> trainc::filesWithoutLoops() {
  static const llvm::StringRef files[] = {"constants.cpp", "library.cpp", "step.cpp",
                                          "trainer.cpp"};
  return files;
}

llvm::ArrayRef<llvm::StringRef> trainc::flagsWithoutLoops() {
  static const llvm::StringRef flags[] = {"-O0", "-fno-openmp"};
  return flags;
}

llvm::ArrayRef<llvm::StringRef> trainc::hostFlags() {
  // Bits must not depend on how a loop is vectorised: no contraction, no -ffast-math, which may
  // stand in the flags of a project's user.
  static const llvm::StringRef flags[] = {"-fno-fast-math",  "-ffp-contract=off",
                                          "-fno-math-errno", "-fno-trapping-math",
                                          "-Wall",           "-Wextra"};
  return flags;
}

llvm::ArrayRef<llvm::StringRef> trainc::nvccFlags() {
  static const llvm::StringRef flags[] = {"-std=c++20", "-O3", "--fmad=false",
                                          "--expt-relaxed-constexpr", "-Xcompiler=-Wall,-Wextra"};
  return flags;
}

static std::string openProject(const ProgramTables &tables) {
  if (tables.target.name == "cpu")
    return "project(trainer LANGUAGES CXX)\n";
  std::vector<std::string> architectures;
  for (const std::string &number : tables.target.cudaArchitectures)
    architectures.push_back(number +
                            (&number == &tables.target.cudaArchitectures.back() ? "" : "-real"));
  return R"(set(CMAKE_CUDA_ARCHITECTURES ")" + llvm::join(architectures, ";") +
         R"(" CACHE STRING "compute capabilities; the last one also as PTX")
project(trainer LANGUAGES CXX CUDA)
)";
}

/// Libraries and sources of the target.
static std::string targetParts(const ProgramTables &tables) {
  if (tables.target.name == "cpu")
    return R"(find_library(DNNL dnnl REQUIRED)

file(GLOB_RECURSE target_runtime runtime/cpu/*.cpp)
set(emitted constants.cpp kernels.cpp step.cpp trainer.cpp)
set(libraries ${DNNL})
)";
  return R"(find_package(CUDAToolkit REQUIRED)
find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
find_library(NCCL nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib REQUIRED)

file(GLOB_RECURSE target_runtime runtime/cuda/*.cpp)
file(GLOB_RECURSE device_runtime runtime/cuda/*.cu)
set(emitted constants.cpp kernels.cu step.cpp trainer.cpp)
set(libraries CUDA::cudart_static CUDA::cublasLt ${NCCL})
)";
}

static std::string compileFlags(const ProgramTables &tables) {
  if (tables.target.name == "cpu") {
    std::string march;
    for (char c : tables.target.march)
      if (llvm::isAlnum(c) || llvm::StringRef("-_.+").contains(c))
        march += c;
    return R"(set(MARCH ")" + march +
           R"(" CACHE STRING "instruction set; another one may change the bits of results")
target_compile_options(trainer PRIVATE -O3 -march=${MARCH})
)";
  }
  return R"(target_include_directories(trainer PRIVATE ${NCCL_INCLUDE})
target_compile_options(trainer PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:)" +
         llvm::join(nvccFlags(), ";") + ">\")\n";
}

std::string trainc::buildFile(const ProgramTables &tables) {
  return R"(# Builds the trainer from this folder alone:
#   cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build
cmake_minimum_required(VERSION 3.18)
)" + openProject(tables) +
         R"(
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(OpenMP REQUIRED)
find_path(JSON_INCLUDE nlohmann/json.hpp REQUIRED)
)" + targetParts(tables) +
         R"(
file(GLOB_RECURSE runtime runtime/*.cpp)
list(REMOVE_ITEM runtime ${target_runtime})
list(FILTER runtime EXCLUDE REGEX "/runtime/minimal/") # of libraries
file(GLOB tables ${CMAKE_CURRENT_SOURCE_DIR}/constants.bin)
file(GLOB_RECURSE operators operators/*.cpp operators/*.cu)
add_executable(trainer ${emitted} ${operators} ${runtime} ${target_runtime} ${device_runtime})
target_compile_features(trainer PRIVATE cxx_std_20)
set_target_properties(trainer PROPERTIES CXX_EXTENSIONS OFF)
target_include_directories(trainer PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${MPI_CXX_INCLUDE_DIRS}
  ${JSON_INCLUDE})
)" + compileFlags(tables) +
         R"(# The bits of results must not depend on contraction, nor on a -ffast-math of CMAKE_CXX_FLAGS.
target_compile_options(trainer PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:)" +
         llvm::join(hostFlags(), ";") + R"(>")
target_link_options(trainer PRIVATE $<$<LINK_LANGUAGE:CXX>:-fno-fast-math>)
# GCC 12 warns falsely of the standard library's strings (its bugs 105329 and 105651).
target_compile_options(trainer PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>")
)" + "set_source_files_properties(" +
         llvm::join(filesWithoutLoops(), " ") + "\n  PROPERTIES COMPILE_OPTIONS \"" +
         llvm::join(flagsWithoutLoops(), ";") +
         R"(")
set_source_files_properties(constants.cpp PROPERTIES OBJECT_DEPENDS "${tables}")
# The runtime is built as a few units: most of its time would go into headers.
set_target_properties(trainer PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
set_source_files_properties(${target_runtime} PROPERTIES UNITY_GROUP target)
set(number 0)
foreach(file ${runtime})
  math(EXPR number "(${number} + 1) % 3")
  set_source_files_properties(${file} PROPERTIES UNITY_GROUP runtime_${number})
endforeach()
# MPI's headers alone: the trainer loads its library where a launcher starts it.
target_link_libraries(trainer PRIVATE OpenMP::OpenMP_CXX ${libraries} ${CMAKE_DL_LIBS})
include(${CMAKE_CURRENT_SOURCE_DIR}/library.cmake OPTIONAL) # of trainc --library
)";
}
