# SPDX-License-Identifier: Apache-2.0
#
#   trainc_add_trainer(NAME MODEL FILE.onnx
#     [DIMS NAME=SIZE...] [LOSS NAME] [OPTIMIZER NAME] [TARGET cpu|cuda]
#     [LIMIT_MEMORY SIZE]      # the build fails where the plan of a rank takes more
#     [DESTINATION FOLDER]     # install the trainer there, with what it reads
#     [OPTIONS OPTION...])     # further options of trainc, such as --bundle
#
# adds the target NAME, part of `all`, which compiles the model to the folder NAME of the current
# binary folder: again where the model, its external data, an option or the compiler changed. The
# program is the imported executable NAME::trainer, which add_test and custom commands can name.
include_guard(GLOBAL)

function(trainc_add_trainer name)
  set(single MODEL LOSS OPTIMIZER TARGET LIMIT_MEMORY DESTINATION)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "${single}" "DIMS;OPTIONS")
  if(NOT arg_MODEL)
    message(FATAL_ERROR "trainc_add_trainer(${name}): no MODEL")
  endif()
  if(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "trainc_add_trainer(${name}): no value for ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "trainc_add_trainer(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()

  get_filename_component(model "${arg_MODEL}" ABSOLUTE)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set(options "${model}" -o "${folder}" --depfile "${folder}.d" --quiet)
  foreach(dimension IN LISTS arg_DIMS)
    list(APPEND options --dim "${dimension}")
  endforeach()
  foreach(pair "LOSS --loss" "OPTIMIZER --optimizer" "TARGET --target" "LIMIT_MEMORY --limit-memory")
    separate_arguments(pair)
    list(GET pair 0 argument)
    list(GET pair 1 option)
    if(arg_${argument})
      list(APPEND options "${option}" "${arg_${argument}}")
    endif()
  endforeach()
  list(APPEND options ${arg_OPTIONS})

  # Make does not see that a command changed; it sees that this file did.
  file(GENERATE OUTPUT "${folder}.options" CONTENT "${options}\n")
  add_custom_command(OUTPUT "${folder}/trainer"
    COMMAND trainc::trainc ${options}
    # trainc leaves the time stamp of a trainer that came out the same; the build needs a new one.
    COMMAND "${CMAKE_COMMAND}" -E touch "${folder}/trainer"
    DEPENDS "${model}" "${folder}.options" "${TRAINC_EXECUTABLE}"
    DEPFILE "${folder}.d"
    COMMENT "Compiling the trainer ${name}" VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${folder}/trainer")

  add_executable(${name}::trainer IMPORTED GLOBAL)
  set_target_properties(${name}::trainer PROPERTIES IMPORTED_LOCATION "${folder}/trainer")
  add_dependencies(${name}::trainer ${name})
  if(arg_DESTINATION)
    install(PROGRAMS "${folder}/trainer" DESTINATION "${arg_DESTINATION}")
    install(FILES "${folder}/parameters.safetensors" "${folder}/export_template.onnx"
      DESTINATION "${arg_DESTINATION}")
    install(DIRECTORY "${folder}/trainer.libs" "${folder}/plan" DESTINATION "${arg_DESTINATION}"
      USE_SOURCE_PERMISSIONS OPTIONAL)
  endif()
endfunction()
