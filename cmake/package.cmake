# SPDX-License-Identifier: Apache-2.0
#
# What is installed besides the programs, and the Debian package: `cpack -G DEB` in a build folder.
include(GNUInstallDirs)

# Manual pages, from what `--help all` prints.
set(manuals
  "trainc|compiles a forward ONNX model into a training program"
  "trainc-run|evaluates a forward ONNX model without compiling it"
  "trainc-opt|runs passes of trainc, one by one"
  "trainc-emit|emits the source folder of a planned module"
  "trainc-inspect|explains the output folder of trainc"
  "trainc-simulate|says what a step takes on a cluster"
  "trainc-compare|compares losses, gradients or tensors of two runs"
  "trainc-data|makes data sets from text, tables, images and raw arrays"
  "trainc-fill|gives an ONNX graph seeded random weights"
  "trainer|trains the model that it was compiled from")
set(manual_pages)
foreach(entry ${manuals})
  string(REPLACE "|" ";" entry "${entry}")
  list(GET entry 0 name)
  list(GET entry 1 summary)
  set(program ${name})
  set(commands)
  if(name STREQUAL "trainer")
    set(program toy_trainer)
    set(commands --commands)
  endif()
  if(name STREQUAL "trainc-data")
    set(commands --commands)
  endif()
  set(page ${CMAKE_BINARY_DIR}/manual/${name}.1)
  add_custom_command(OUTPUT ${page}.gz
    # In a build with sanitizers: as tests/lit.cfg.py says.
    COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=allow_user_poisoning=0:detect_leaks=0
      sh ${CMAKE_SOURCE_DIR}/tools/manual.sh ${name} ${summary} ${PROJECT_VERSION}
      $<TARGET_FILE:${program}> ${commands} > ${page}
    COMMAND gzip -9nf ${page}
    DEPENDS ${program} ${CMAKE_SOURCE_DIR}/tools/manual.sh VERBATIM)
  list(APPEND manual_pages ${page}.gz)
endforeach()

add_custom_target(trainc_manual ALL DEPENDS ${manual_pages})
install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/manual/completion)
list(TRANSFORM manuals REPLACE "[|].*" "" OUTPUT_VARIABLE programs)
list(JOIN programs " " program_names)
configure_file(tools/completion.bash.in ${CMAKE_BINARY_DIR}/manual/completion/trainc @ONLY)
# bash loads a completion by the name of the program.
foreach(name IN LISTS programs)
  if(NOT name STREQUAL "trainc")
    file(CREATE_LINK trainc ${CMAKE_BINARY_DIR}/manual/completion/${name} SYMBOLIC)
  endif()
  install(FILES ${CMAKE_BINARY_DIR}/manual/completion/${name}
    DESTINATION share/bash-completion/completions)
endforeach()

# What it links, as CycloneDX.
if(TARGET trainc_cuda)
  find_package(CUDAToolkit QUIET)
  set(CUDAToolkit_LIBRARY_VERSION ${CUDAToolkit_VERSION})
  version_of_header(NCCL_LIBRARY_VERSION "${NCCL_INCLUDE}" nccl.h NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
endif()
foreach(library MPI CUDAToolkit NCCL) # those that a build may lack have no version then
  set(${library}_BOM_VERSION)
  if(${library}_LIBRARY_VERSION)
    set(${library}_BOM_VERSION "\"version\": \"${${library}_LIBRARY_VERSION}\", ")
  endif()
endforeach()
configure_file(cmake/bom.cdx.json.in ${CMAKE_BINARY_DIR}/bom.cdx.json @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/bom.cdx.json DESTINATION share/doc/trainc)
install(FILES README.md DESTINATION share/doc/trainc)
install(DIRECTORY docs/ DESTINATION share/doc/trainc/docs)
install(DIRECTORY examples/build_pipeline DESTINATION share/doc/trainc/examples)
install(SCRIPT cmake/installed_digest.cmake)

# Debian's own files.
configure_file(cmake/debian/changelog.in ${CMAKE_BINARY_DIR}/debian/changelog.Debian @ONLY)
configure_file(CHANGELOG.md ${CMAKE_BINARY_DIR}/debian/changelog COPYONLY)
foreach(file changelog changelog.Debian)
  execute_process(COMMAND gzip -9nkf ${CMAKE_BINARY_DIR}/debian/${file} COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${CMAKE_BINARY_DIR}/debian/${file}.gz DESTINATION share/doc/trainc)
endforeach()
install(FILES cmake/debian/copyright DESTINATION share/doc/trainc)
install(FILES cmake/debian/lintian-overrides DESTINATION share/lintian/overrides RENAME trainc)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trainc)
set(CPACK_PACKAGE_VENDOR "the trainc project")
set(CPACK_PACKAGE_CONTACT "trainc developers <trainc@packages.debian.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "ahead-of-time compiler from ONNX models to training programs")
set(CPACK_PACKAGE_DESCRIPTION
"trainc compiles a forward ONNX model into a training program: forward,
gradient, optimizer, memory plan and communication are decided at compile
time and emitted as readable C++, linked with a small runtime.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# A trainer is compiled and linked where trainc runs, and started by mpirun where it has several ranks.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++, libdnnl-dev, openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ccache, cmake, libopenmpi-dev, nlohmann-json3-dev")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
