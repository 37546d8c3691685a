# SPDX-License-Identifier: Apache-2.0
#
#   cmake -D TRAINC=PROGRAM -D OPTIONS_FILE=FILE -P trainc_complete_trainer.cmake -- OUTPUT...
#
# The second half of trainc_add_trainer: makes again what somebody removed, and gives the files a new
# time stamp. trainc leaves that of what came out the same; Make and Ninja would come here for ever.
# They remove what an interrupted command has changed: so this one has to be short.
set(outputs "")
set(missing "")
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(DEFINED is_output)
    list(APPEND outputs "${CMAKE_ARGV${i}}")
    if(NOT EXISTS "${CMAKE_ARGV${i}}")
      list(APPEND missing "${CMAKE_ARGV${i}}")
    endif()
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(is_output TRUE)
  endif()
endforeach()
if(missing)
  file(READ "${OPTIONS_FILE}" options)
  string(STRIP "${options}" options)
  execute_process(COMMAND "${TRAINC}" ${options} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "cannot make again what is gone: ${missing}")
  endif()
endif()
file(TOUCH_NOCREATE ${outputs})
