# SPDX-License-Identifier: Apache-2.0
#
# Run when everything is installed: leaves one file in share/trainc/installed, named after what trainers
# are made with. They depend on it (compiler/installation.h), and another trainc has another: copies and
# packages keep the time stamps of files, so that these need not be newer than a trainer.
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
file(GLOB_RECURSE files RELATIVE "${prefix}" "${prefix}/share/trainc/runtime/*" "${prefix}/lib/libtrainc_*.a")
list(APPEND files bin/trainc)
list(SORT files)
set(list "")
foreach(name IN LISTS files)
  file(SHA256 "${prefix}/${name}" digest)
  string(APPEND list "${digest}  ${name}\n")
endforeach()
string(SHA256 digest "${list}")
string(SUBSTRING "${digest}" 0 16 digest)
file(GLOB others "${prefix}/share/trainc/installed/*")
list(REMOVE_ITEM others "${prefix}/share/trainc/installed/${digest}")
if(others)
  file(REMOVE ${others})
endif()
file(MAKE_DIRECTORY "${prefix}/share/trainc/installed")
file(WRITE "${prefix}/share/trainc/installed/${digest}" "${list}")
