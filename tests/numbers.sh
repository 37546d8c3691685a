#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints what the importer makes of an ONNX model as a case for trainc-check-gradient, in f64. Inputs and
# expected results, where they are given, are lines of the model's file, each a number of the inputs or results:
#
#   // check.inputs dense<[1.0, 2.0]> : tensor<2xf64>
#   // check.results dense<3.0> : tensor<f64>
#
#   tests/numbers.sh TRAINC MODEL.onnxtxt
set -euo pipefail
list() { sed -n "s|^// $1 ||p" "$2" | paste -sd, ; }
attributes="check.inputs = [$(list check.inputs "$2")], check.results = [$(list check.results "$2")]"
echo "// NUMBERS"
"$1" "$2" --forward-only --stop-after import --print-ir | sed -n '/func.func @model/,/^  }/p' |
  sed 's/f32/f64/g; s/@model/@numbers_model/; s/ {train.role = #train[^}]*}//g; s/ loc([^()]*)//g
       s/0xFF800000/0xFFF0000000000000/g; s/0x7F800000/0x7FF0000000000000/g' |
  awk -v attributes="$attributes" '!put && sub(/ \{$/, " attributes {" attributes "} {") { put = 1 } { print } END { exit !put }'
