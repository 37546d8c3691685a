#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What trainc takes from model to source where models are long: a recurrent cell
# h = tanh(x_t W + h U + b) written out 500 and 5,000 times, and a chain of 100,000
# pointwise operations. Processor seconds of trainc alone, the least of some runs that
# alternate, and the largest resident size. Prints each bar and whether it holds.
#
#   unrolled_cells.sh [--build FOLDER] [--scratch FOLDER] [--runs N]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/release
scratch=
runs=3
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=$(cd "$2" && pwd) && shift 2 ;;
  --scratch) scratch=$2 && shift 2 ;;
  --runs) runs=$2 && shift 2 ;;
  *) sed -n '3,10s/^# \?//p' "$0" && exit 2 ;;
  esac
done
if [ -z "$scratch" ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
fi
mkdir -p "$scratch"
cd "$scratch"

cells() { # count
  awk -v cells="$1" '
    function values(count, scale, i, text) {
      for (i = 0; i < count; i++) text = text (i ? ", " : "") sprintf("%.4f", (rand() - 0.5) * scale)
      return "{" text "}"
    }
    BEGIN {
      srand(1)
      print "<ir_version: 8, opset_import: [\"\" : 17]>"
      printf "unrolled (float[batch, %d, 16] x) => (float[batch, 8] y)\n<", cells
      print "float[16, 32] w = " values(512, 0.5) ", float[32, 32] u = " values(1024, 0.25)
      print ", float[32] b = " values(32, 0.25) ", float[32, 8] v = " values(256, 0.5)
      for (t = 0; t < cells; t++) printf ", int64 t%d = {%d}\n", t, t
      print ">\n{"
      for (t = 0; t < cells; t++) {
        printf "  x_%d = Gather <axis = 1> (x, t%d)\n  xw_%d = MatMul (x_%d, w)\n", t, t, t, t
        if (t) printf "  hu_%d = MatMul (h_%d, u)\n  s_%d = Add (xw_%d, hu_%d)\n", t, t - 1, t, t, t
        printf "  z_%d = Add (%s_%d, b)\n  h_%d = Tanh (z_%d)\n", t, t ? "s" : "xw", t, t, t
      }
      printf "  y = MatMul (h_%d, v)\n}\n", cells - 1
    }'
}
chain() { # count
  awk -v count="$1" 'BEGIN {
    print "<ir_version: 8, opset_import: [\"\" : 17]>"
    print "chain (float[batch, 8] x) => (float[batch, 8] y)"
    print "<float[8] w = {1, 1, 1, 1, 1, 1, 1, 1}, float k = {1.001}>\n{\n  v_0 = Mul (x, w)"
    for (i = 1; i <= count; i++)
      printf "  v_%d = %s\n", i, i % 3 == 0 ? "Tanh (v_" i - 1 ")" : i % 3 == 1 ? "Add (v_" i - 1 ", w)" : "Mul (v_" i - 1 ", k)"
    printf "  y = Add (v_%d, w)\n}\n", count
  }'
}

failed=0
bar() { # description value limit unit
  local verdict
  verdict=$(awk -v v="$2" -v l="$3" 'BEGIN { print (v <= l) ? "ok" : "FAILED" }')
  [ "$verdict" = ok ] || failed=1
  printf '%-52s %8s %-3s at most %6s  %s\n' "$1" "$2" "$4" "$3" "$verdict"
}
least() { sort -g "$1" | head -1; }

cells 500 >cells_500.onnxtxt
cells 5000 >cells_5000.onnxtxt
chain 100000 >chain.onnxtxt
rm -f seconds_*
compile() { "$build/bin/trainc" "$1.onnxtxt" --dim batch=8 --loss mse --source-only --quiet -o "out_$1"; }
TIMEFORMAT='%U %S'
for _ in $(seq "$runs"); do
  for model in cells_500 cells_5000 chain; do
    { time compile $model; } 2>taken
    awk 'END { print $1 + $2 }' taken >>seconds_$model
  done
done
read -r _ memory <<<"$(python3 "$here/measure.py" "$build/bin/trainc" chain.onnxtxt --dim batch=8 \
  --loss mse --source-only --quiet -o out_chain)"
per_cell=$(awk -v small="$(least seconds_cells_500)" \
  -v large="$(least seconds_cells_5000)" 'BEGIN { printf "%.2f", large / small / 10 }')
bar "trainc to emitted source, 5,000 unrolled cells" "$(least seconds_cells_5000)" 5 s
bar "a cell of 5,000 against a cell of 500" "$per_cell" 1.3 x
bar "trainc to emitted source, 100,000 pointwise nodes" "$(least seconds_chain)" 10 s
bar "its largest resident size" "$memory" 1000 MB
exit $failed
