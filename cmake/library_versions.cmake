# SPDX-License-Identifier: Apache-2.0
#
# Versions of libraries that have no CMake package to say them, from their headers; for `trainc
# --version` and the list of what is linked.

# Sets RESULT to what the definitions of these macros join to.
function(version_of_header result folder header)
  find_path(header_folder ${header} HINTS ${folder} NO_CACHE)
  set(version)
  foreach(macro ${ARGN})
    file(STRINGS ${header_folder}/${header} line REGEX "define +${macro} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX REPLACE ".* ([0-9]+).*" "\\1" number "${line}")
    list(APPEND version ${number})
  endforeach()
  list(JOIN version "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

version_of_header(DNNL_VERSION "" oneapi/dnnl/dnnl_version.h
  DNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH)
# MPI_CXX_VERSION is the standard's.
set(MPI_LIBRARY_NAME "Open MPI")
set(MPI_LIBRARY_LICENCE "BSD-3-Clause")
version_of_header(MPI_LIBRARY_VERSION "${MPI_CXX_INCLUDE_DIRS}" mpi.h
  OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION)
if(NOT MPI_LIBRARY_VERSION MATCHES "^[0-9]")
  set(MPI_LIBRARY_NAME "MPICH")
  set(MPI_LIBRARY_LICENCE "MPICH's licence")
  find_path(MPI_FOLDER mpi.h HINTS ${MPI_CXX_INCLUDE_DIRS} NO_CACHE)
  file(STRINGS ${MPI_FOLDER}/mpi.h line REGEX "define +MPICH_VERSION" LIMIT_COUNT 1)
  string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" MPI_LIBRARY_VERSION "${line}")
endif()

find_path(ONNX_FOLDER onnx/common/version.h NO_CACHE)
file(STRINGS ${ONNX_FOLDER}/onnx/common/version.h line REGEX "LAST_RELEASE_VERSION" LIMIT_COUNT 1)
string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" ONNX_VERSION "${line}")
find_package(nlohmann_json QUIET)
set(NLOHMANN_JSON_VERSION "${nlohmann_json_VERSION}")
find_path(JPEG_CONFIG_FOLDER jconfig.h NO_CACHE)
file(STRINGS ${JPEG_CONFIG_FOLDER}/jconfig.h line REGEX "LIBJPEG_TURBO_VERSION " LIMIT_COUNT 1)
string(REGEX REPLACE ".* ([0-9.]+).*" "\\1" LIBJPEG_VERSION "${line}")
