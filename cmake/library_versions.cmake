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
find_path(ONNX_FOLDER onnx/common/version.h NO_CACHE)
file(STRINGS ${ONNX_FOLDER}/onnx/common/version.h line REGEX "LAST_RELEASE_VERSION" LIMIT_COUNT 1)
string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" ONNX_VERSION "${line}")
find_package(nlohmann_json QUIET)
set(NLOHMANN_JSON_VERSION "${nlohmann_json_VERSION}")
find_path(JPEG_CONFIG_FOLDER jconfig.h NO_CACHE)
file(STRINGS ${JPEG_CONFIG_FOLDER}/jconfig.h line REGEX "LIBJPEG_TURBO_VERSION " LIMIT_COUNT 1)
string(REGEX REPLACE ".* ([0-9.]+).*" "\\1" LIBJPEG_VERSION "${line}")
