# SPDX-License-Identifier: Apache-2.0
#
#   trainc_add_trainer(NAME MODEL FILE.onnx
#     [DIMS NAME=SIZE...] [LOSS NAME] [OPTIMIZER NAME] [TARGET cpu|cuda]
#     [LIMIT_MEMORY SIZE]      # the build fails where the plan of a rank takes more
#     [DESTINATION FOLDER]     # install the trainer there, with what it reads
#     [DEPENDS FILE|TARGET...] # what else makes a new trainer necessary, or has to be made first
#     [OPTIONS OPTION...])     # further options of trainc, such as --bundle
#
# adds the target NAME, part of `all`, which compiles the model to the folder NAME of the current
# binary folder: again where the model, its external data, an option or the compiler changed. The
# program is the imported executable NAME::trainer, which add_test and custom commands can name.
#
#   trainc_add_library(NAME MODEL FILE.onnx ...)
#
# takes the same and makes the model's library, too: NAME::library, to be linked, with its headers.
include_guard(GLOBAL)
set_property(GLOBAL PROPERTY _trainc_cmake_folder "${CMAKE_CURRENT_LIST_DIR}")

# Ends the configuration where trainc would make no trainer, another one, or one elsewhere.
function(_trainc_check_options name)
  set(refused
    "o|depfile|depfile-target" "trainc_add_trainer gives it itself"
    "source-only|stop-after|check|print-ir|print-parameters|memory-curve" "no trainer is made with it"
    "help|help-list|help-hidden|help-list-hidden|h|version|list-operators|print-documentation"
      "it prints and compiles nothing")
  foreach(option IN LISTS ARGN)
    if(option STREQUAL "")
      message(FATAL_ERROR "trainc_add_trainer(${name}): an empty word among the OPTIONS")
    endif()
    set(words "${option}")
    if(option MATCHES "[<>]") # of a generator expression: what it may become
      string(REGEX MATCHALL "[:,]--?[a-z][a-z-]*" words ":${option}")
      list(TRANSFORM words REPLACE "^[:,]" "")
    endif()
    foreach(word IN LISTS words)
      set(pairs ${refused})
      while(pairs)
        list(POP_FRONT pairs names why)
        if(word MATCHES "^(-bundle|--?bundle=.*)$")
          message(FATAL_ERROR "trainc_add_trainer(${name}): ${word}: it has to be --bundle, by which the "
            "build knows that libraries belong to the trainer")
        elseif(word MATCHES "^--?(${names})(=.*)?$")
          message(FATAL_ERROR "trainc_add_trainer(${name}): ${word} is not an option of a trainer's "
            "target: ${why}")
        endif()
      endwhile()
    endforeach()
  endforeach()
endfunction()

# The path of a model, as CMake takes names of files: in the source folder, else one that the build
# makes in the binary folder.
function(_trainc_find_model name model result)
  if(NOT IS_ABSOLUTE "${model}" AND NOT model MATCHES "^\\$<")
    set(made "${CMAKE_CURRENT_BINARY_DIR}/${model}")
    get_source_file_property(is_made "${made}" GENERATED)
    get_filename_component(model "${model}" ABSOLUTE)
    if(NOT EXISTS "${model}" AND is_made)
      set(model "${made}")
    elseif(NOT EXISTS "${model}")
      message(FATAL_ERROR "trainc_add_trainer(${name}): there is no model ${model}, and no command "
        "above makes ${made}")
    endif()
  endif()
  set(${result} "${model}" PARENT_SCOPE)
endfunction()

# Ends the configuration where the build would fail, or never come to an end.
function(_trainc_check_paths name)
  math(EXPR last "${ARGC} - 1")
  foreach(i RANGE 1 ${last}) # a list would be cut at semicolons
    set(path "${ARGV${i}}")
    if(path MATCHES "^\\$<")
      continue()
    elseif(path MATCHES "[]'\"&*<>|?`^=;#:$\\[]")
      message(FATAL_ERROR "trainc_add_trainer(${name}): ${path} holds ${CMAKE_MATCH_0}, which CMake, Make "
        "and Ninja do not read alike in rules; use other names, or build elsewhere (cmake -B FOLDER)")
    elseif(path MATCHES "[(].*[)]$")
      message(FATAL_ERROR "trainc_add_trainer(${name}): ${path} ends with a word in parentheses, which "
        "Make takes for a member of a library; use other names")
    endif()
  endforeach()
endfunction()

function(trainc_add_trainer name)
  set(single MODEL LOSS OPTIMIZER TARGET LIMIT_MEMORY DESTINATION)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "${single}" "DIMS;DEPENDS;OPTIONS")
  if(arg_KEYWORDS_MISSING_VALUES)
    list(JOIN arg_KEYWORDS_MISSING_VALUES ", " missing)
    message(FATAL_ERROR "trainc_add_trainer(${name}): no value for ${missing}")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN arg_UNPARSED_ARGUMENTS ", " unknown)
    message(FATAL_ERROR "trainc_add_trainer(${name}): unknown arguments ${unknown}")
  endif()
  math(EXPR last "${ARGC} - 1")
  set(keyword "")
  set(seen "")
  foreach(i RANGE ${last}) # cmake_parse_arguments drops empty values
    if(i EQUAL 0)
      continue()
    elseif("${ARGV${i}}" STREQUAL "")
      message(FATAL_ERROR "trainc_add_trainer(${name}): an empty value for ${keyword}")
    elseif("${ARGV${i}}" MATCHES "^(MODEL|LOSS|OPTIMIZER|TARGET|LIMIT_MEMORY|DESTINATION|DIMS|DEPENDS|OPTIONS)$")
      if("${ARGV${i}}" IN_LIST seen)
        message(FATAL_ERROR "trainc_add_trainer(${name}): ${ARGV${i}} is given twice")
      endif()
      list(APPEND seen "${ARGV${i}}")
      set(keyword "${ARGV${i}}")
    endif()
  endforeach()
  if(NOT DEFINED arg_MODEL)
    message(FATAL_ERROR "trainc_add_trainer(${name}): no MODEL")
  endif()
  foreach(dimension IN LISTS arg_DIMS)
    if(NOT dimension MATCHES "^.+=[0-9]+$")
      message(FATAL_ERROR
        "trainc_add_trainer(${name}): DIMS expects NAME=SIZE, found ${dimension}")
    endif()
  endforeach()
  _trainc_check_options(${name} ${arg_OPTIONS})
  _trainc_check_paths(${name} "${arg_MODEL}") # before it is taken for a list
  _trainc_find_model(${name} "${arg_MODEL}" model)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  if(CMAKE_CURRENT_BINARY_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR AND IS_DIRECTORY "${folder}"
      AND NOT EXISTS "${folder}/.made-by-trainc")
    message(FATAL_ERROR "trainc_add_trainer(${name}): ${folder}, where the trainer would be made, is "
      "a folder of the sources; build elsewhere (cmake -B FOLDER), or name the target otherwise")
  endif()
  set(options "${model}" -o "${folder}" --depfile "${folder}.d"
    --depfile-target "${folder}.stamp" --quiet)
  foreach(dimension IN LISTS arg_DIMS)
    list(APPEND options --dim "${dimension}")
  endforeach()
  foreach(pair "LOSS --loss" "OPTIMIZER --optimizer" "TARGET --target" "LIMIT_MEMORY --limit-memory")
    separate_arguments(pair)
    list(GET pair 0 argument)
    list(GET pair 1 option)
    if(DEFINED arg_${argument})
      list(APPEND options "${option}" "${arg_${argument}}")
    endif()
  endforeach()
  if(DEFINED arg_OPTIONS)
    string(APPEND options ";${arg_OPTIONS}") # list(APPEND) would cut generator expressions at their ;
  endif()

  get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(is_multi_config AND options MATCHES "\\$<")
    message(FATAL_ERROR "trainc_add_trainer(${name}): generator expressions, with which configurations "
      "may differ, and one folder for the trainers of all of them; use a generator of one "
      "configuration, such as Ninja, or options without them")
  endif()

  # Make does not see that a command changed; it sees that this file did.
  file(GENERATE OUTPUT "${folder}.options" CONTENT "${options}\n")
  # Ninja removes the output of an interrupted command that has a DEPFILE. So that is a stamp, and what
  # trainc makes, the old trainer too, is of a second command. That one makes again what is gone.
  set(forget "")
  if(CMAKE_GENERATOR MATCHES "Makefiles")
    # CMake 3.25 adds what a new depfile names to what earlier ones named; one of those that is gone
    # would compile the trainer for ever.
    set(forget COMMAND "${CMAKE_COMMAND}" -E rm -f
      "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/compiler_depend.internal")
  endif()
  get_target_property(trainc trainc::trainc IMPORTED_LOCATION)
  _trainc_check_paths(${name} "${model}" "${folder}" "${trainc}")
  set(outputs trainer parameters.safetensors export_template.onnx plan/plan.json)
  if("--bundle" IN_LIST arg_OPTIONS)
    list(APPEND outputs trainer.libs/libraries.txt)
  endif()
  if("--library" IN_LIST arg_OPTIONS)
    get_filename_component(library "${model}" NAME_WLE) # as compiler/emit/library.cpp has it
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" library "model_${library}")
    list(APPEND outputs "library/lib${library}.so" "library/lib${library}.a" "library/${library}.h"
      "library/${library}.hpp")
  endif()
  list(TRANSFORM outputs PREPEND "${folder}/")
  add_custom_command(OUTPUT "${folder}.stamp"
    COMMAND trainc::trainc ${options}
    COMMAND "${CMAKE_COMMAND}" -E touch "${folder}.stamp"
    ${forget}
    DEPENDS "${model}" "${folder}.options" "${trainc}" ${arg_DEPENDS}
    DEPFILE "${folder}.d"
    COMMENT "Compiling the trainer ${name}" VERBATIM COMMAND_EXPAND_LISTS)
  get_property(cmake_folder GLOBAL PROPERTY _trainc_cmake_folder)
  add_custom_command(OUTPUT ${outputs}
    COMMAND "${CMAKE_COMMAND}" -D "TRAINC=$<TARGET_FILE:trainc::trainc>" -D "OPTIONS_FILE=${folder}.options"
      -P "${cmake_folder}/trainc_complete_trainer.cmake" -- ${outputs}
    DEPENDS "${folder}.stamp"
    COMMENT "Completing the trainer ${name}" VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${folder}/trainer")

  add_executable(${name}::trainer IMPORTED GLOBAL)
  set_target_properties(${name}::trainer PROPERTIES IMPORTED_LOCATION "${folder}/trainer")
  add_dependencies(${name}::trainer ${name})
  if("--library" IN_LIST arg_OPTIONS)
    file(MAKE_DIRECTORY "${folder}/library") # CMake wants it before it is made
    add_library(${name}::library SHARED IMPORTED GLOBAL)
    set_target_properties(${name}::library PROPERTIES IMPORTED_LOCATION "${folder}/library/lib${library}.so"
      IMPORTED_SONAME "lib${library}.so" INTERFACE_INCLUDE_DIRECTORIES "${folder}/library")
    add_dependencies(${name}::library ${name})
  endif()
  if(DEFINED arg_DESTINATION)
    install(CODE "set(folder [==[${folder}]==])\ninclude([==[${cmake_folder}/trainc_check_bundle.cmake]==])")
    install(PROGRAMS "${folder}/trainer" DESTINATION "${arg_DESTINATION}")
    install(FILES "${folder}/parameters.safetensors" "${folder}/export_template.onnx"
      DESTINATION "${arg_DESTINATION}")
    install(DIRECTORY "${folder}/trainer.libs" "${folder}/plan" DESTINATION "${arg_DESTINATION}"
      USE_SOURCE_PERMISSIONS OPTIONAL)
  endif()
endfunction()

function(trainc_add_library name)
  set(arguments "${ARGN}")
  list(FIND arguments OPTIONS place)
  if(place EQUAL -1)
    list(APPEND arguments OPTIONS --library)
  else()
    math(EXPR place "${place} + 1")
    list(INSERT arguments ${place} --library)
  endif()
  trainc_add_trainer(${name} ${arguments})
endfunction()
