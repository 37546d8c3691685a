# SPDX-License-Identifier: Apache-2.0
#
# trainc_units(TARGET) compiles the sources of a target several at a time: most of a compiler's time goes
# into headers, which a unit reads once. A unit holds files of one folder, in the order of their names, up
# to 64 KiB; a larger file is a unit by itself. So names that are local to a file differ within its folder.
# Larger units make whole builds faster, single changes slower, and take more than 1 GB.
option(TRAINC_UNITS "compile several sources at a time; OFF: each by itself, as editors want it" ON)

function(trainc_units target)
  if(NOT TRAINC_UNITS)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(folder)
  set(filled 0)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(GET source PARENT_PATH parent)
    file(SIZE ${source} size)
    math(EXPR filled "${filled} + ${size}")
    if(NOT parent STREQUAL folder)
      set(number 0)
      set(filled ${size})
      cmake_path(GET parent FILENAME name)
    elseif(filled GREATER 65536)
      math(EXPR number "${number} + 1")
      set(filled ${size})
    endif()
    set(folder ${parent})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${number})
  endforeach()
endfunction()
