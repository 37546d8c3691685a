# SPDX-License-Identifier: Apache-2.0
#
# While a trainer is installed: ends that where a library of its bundle is gone from ${folder}.
file(STRINGS "${folder}/.made-by-trainc" libraries REGEX "^trainer[.]libs/")
foreach(library IN LISTS libraries)
  if(NOT EXISTS "${folder}/${library}")
    message(FATAL_ERROR "${folder}/${library} is gone, without which the trainer does not start; "
      "remove ${folder}/trainer and build again")
  endif()
endforeach()
