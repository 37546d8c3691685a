#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the parts of a test file that begin with the line `// NAME`; parts are
# separated by lines `// -----`, which stay between the printed ones.
#
#   tests/section.sh NAME FILE
set -euo pipefail
awk -v marker="// $1" '
  /^\/\/ -----/ { inside = 0; next }
  $0 == marker { inside = 1; if (seen++) print "// -----" }
  { print inside ? $0 : "" }' "$2"
