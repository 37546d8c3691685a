#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints compiler/emit/macros.inc: the macros of the headers that emitted sources include, with
# every compiler found here, and those that are in it already (other machines' compilers know
# others). A macro would replace a name of the model wherever it stands, whatever its namespace.
# Names of reserved form are left out: no emitted identifier begins with an underscore or has two in
# a row.
#
#   tests/emit/list_macros.sh >new && mv new compiler/emit/macros.inc
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

standard() { grep -ohE '"#include <[a-z]+>' compiler/emit/*.cpp | tr -d '"' | sort -u; }
headers() { printf '#include "%s"\n' "$@"; }
{ standard && headers runtime/program.h runtime/kernels/*.h; } >"$folder/cpu.cpp"
{ standard && headers runtime/kernels/*.h runtime/cuda/kernels/*.h runtime/cuda/launch.h; } >"$folder/cuda.cu"

{
  for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    for standard in c++20 gnu++20; do
      $compiler -std=$standard -fopenmp -dM -E -I . "$folder/cpu.cpp" 2>/dev/null || true
    done
  done
  g++ -x c++ -std=c++20 -dM -E -I . -I tests/stand_in/include "$folder/cuda.cu"
  if nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null); then
    "$nvcc" -std=c++20 -E -Xcompiler -dM -I . "$folder/cuda.cu"
  fi
} | awk '$1 == "#define" { sub(/\(.*/, "", $2); print $2 }' >"$folder/found"
{ cat "$folder/found" && tr -s '" ' '\n\n' <compiler/emit/macros.inc; } |
  grep -E '^[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*$' | LC_ALL=C sort -u | tr '\n' ' ' |
  fold -s -w 96 | sed 's/.*/"&"/'
