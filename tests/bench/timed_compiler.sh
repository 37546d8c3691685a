#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A host compiler that writes when each of its runs began and ended to the file
# TIMED_COMPILER: the span from the first to the last is the host compile, whatever
# the disk does to the files around it.
begin=$(date +%s.%N)
g++ "$@"
status=$?
echo "$begin $(date +%s.%N)" >>"$TIMED_COMPILER"
exit $status
