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
include_guard(GLOBAL)

# Ends the configuration where trainc would make no trainer, another one, or one elsewhere.
function(_trainc_check_options name)
  set(refused
    "o|depfile" "trainc_add_trainer gives it itself"
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
        if(word MATCHES "^--?(${names})(=.*)?$")
          message(FATAL_ERROR "trainc_add_trainer(${name}): ${word} is no option of a trainer's "
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
  _trainc_find_model(${name} "${arg_MODEL}" model)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  if(CMAKE_CURRENT_BINARY_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR AND IS_DIRECTORY "${folder}"
      AND NOT EXISTS "${folder}/.made-by-trainc")
    message(FATAL_ERROR "trainc_add_trainer(${name}): ${folder}, where the trainer would be made, is "
      "a folder of the sources; build elsewhere (cmake -B FOLDER), or name the target otherwise")
  endif()
  set(options "${model}" -o "${folder}" --depfile "${folder}.d" --quiet)
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

  # Make does not see that a command changed; it sees that this file did.
  file(GENERATE OUTPUT "${folder}.options" CONTENT "${options}\n")
  set(outputs trainer parameters.safetensors export_template.onnx plan/memory.json)
  list(TRANSFORM outputs PREPEND "${folder}/")
  add_custom_command(OUTPUT ${outputs}
    COMMAND trainc::trainc ${options}
    # trainc leaves the time stamp of what came out the same; Make and Ninja need a new one, or they
    # compile again for ever.
    COMMAND "${CMAKE_COMMAND}" -E touch_nocreate ${outputs}
    DEPENDS "${model}" "${folder}.options" "${TRAINC_EXECUTABLE}" ${arg_DEPENDS}
    DEPFILE "${folder}.d"
    COMMENT "Compiling the trainer ${name}" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name} ALL DEPENDS "${folder}/trainer")

  add_executable(${name}::trainer IMPORTED GLOBAL)
  set_target_properties(${name}::trainer PROPERTIES IMPORTED_LOCATION "${folder}/trainer")
  add_dependencies(${name}::trainer ${name})
  if(DEFINED arg_DESTINATION)
    install(PROGRAMS "${folder}/trainer" DESTINATION "${arg_DESTINATION}")
    install(FILES "${folder}/parameters.safetensors" "${folder}/export_template.onnx"
      DESTINATION "${arg_DESTINATION}")
    install(DIRECTORY "${folder}/trainer.libs" "${folder}/plan" DESTINATION "${arg_DESTINATION}"
      USE_SOURCE_PERMISSIONS OPTIONAL)
  endif()
endfunction()
