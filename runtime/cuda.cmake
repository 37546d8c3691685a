# SPDX-License-Identifier: Apache-2.0
#
# libtrainc_cuda.a, where the CUDA toolkit, cuBLASLt and NCCL are found: C++ files by
# the host compiler, *.cu by nvcc with the flags of compiler/emit/build_file.cpp.
set(TRAINC_CUDA_ARCHITECTURES "80;90;100" CACHE STRING
  "compute capabilities of libtrainc_cuda.a; the last one also as PTX")
find_package(CUDAToolkit QUIET)
find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cublasLt OR NOT NCCL_INCLUDE OR TRAINC_SANITIZE)
  message(STATUS "without CUDA: trainc --target cuda emits source but cannot compile it "
    "(needs the CUDA toolkit with cuBLASLt, and NCCL; no sanitizers)")
  return()
endif()

set(nvcc_flags -std=c++20 -O3 --fmad=false --expt-relaxed-constexpr
  -Xcompiler=-Wall,-Wextra,-fPIC,-fno-gnu-unique -Werror all-warnings --threads 0)
foreach(number ${TRAINC_CUDA_ARCHITECTURES})
  list(APPEND nvcc_flags -gencode arch=compute_${number},code=sm_${number})
endforeach()
list(GET TRAINC_CUDA_ARCHITECTURES -1 newest)
list(APPEND nvcc_flags -gencode arch=compute_${newest},code=compute_${newest})

file(GLOB cuda_sources CONFIGURE_DEPENDS cuda/*.cpp cuda/products/*.cpp cuda/attention/*.cpp)
file(GLOB device_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
  cuda/*.cu cuda/products/*.cu cuda/attention/*.cu)
foreach(source ${device_sources})
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${source}.o)
  get_filename_component(folder ${object} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CUDAToolkit_NVCC_EXECUTABLE} ${nvcc_flags}
      -ccbin ${CMAKE_CXX_COMPILER} -I ${CMAKE_SOURCE_DIR} -MD -MF ${object}.d
      -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    COMMENT "Building CUDA object ${source}.o" VERBATIM)
  list(APPEND device_objects ${object})
endforeach()

add_library(trainc_cuda STATIC ${cuda_sources} ${device_objects})
trainc_units(trainc_cuda)
set_source_files_properties(${device_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
target_include_directories(trainc_cuda PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/..)
target_include_directories(trainc_cuda SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_INCLUDE})
target_link_libraries(trainc_cuda PUBLIC OpenMP::OpenMP_CXX)
target_compile_features(trainc_cuda PUBLIC cxx_std_20)
target_compile_options(trainc_cuda PRIVATE -O2 -fno-gnu-unique) # as of trainc_runtime
set_target_properties(trainc_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)
