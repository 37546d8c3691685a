#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Time and memory of compiling GPT-2 with 12 and with 48 layers: trainc to emitted
# source, then the host compiler on that source. Prints each bar and whether it holds.
#
#   compile_time.sh [--build FOLDER] [--scratch FOLDER]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/release
scratch=
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=$2 && shift 2 ;;
  --scratch) scratch=$2 && shift 2 ;;
  *) sed -n '3,7s/^# \?//p' "$0" && exit 2 ;;
  esac
done
if [ -z "$scratch" ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
fi
mkdir -p "$scratch"
cd "$scratch"

failed=0
bar() { # description value limit unit
  local verdict
  verdict=$(awk -v v="$2" -v l="$3" 'BEGIN { print (v <= l) ? "ok" : "FAILED" }')
  [ "$verdict" = ok ] || failed=1
  printf '%-52s %8s %-3s at most %6s  %s\n' "$1" "$2" "$4" "$3" "$verdict"
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

for layers in 12 48; do
  "$build/bin/trainc-fill" "$root/tests/models/graphs/gpt2_$layers.onnx" -o "gpt2_$layers.onnx" >/dev/null
  cat "gpt2_$layers.onnx.data" >/dev/null # in the page cache for every run alike
  best=
  for _ in 1 2 3; do
    rm -rf "out_$layers"
    measured=$(python3 "$here/measure.py" "$build/bin/trainc" "gpt2_$layers.onnx" --dim batch=4 \
      --dim sequence=64 --loss cross_entropy --optimizer adamw --source-only -o "out_$layers")
    best=$(printf '%s\n%s\n' "$best" "$measured" | grep . | sort -n | head -1)
  done
  read -r "trainc_$layers" "memory_$layers" <<<"$best"
  cmake -S "out_$layers/source" -B "host_$layers" >cmake.log || { cat cmake.log && exit 1; }
  read -r "host_$layers" _ <<<"$(python3 "$here/measure.py" cmake --build "host_$layers" -j2)"
done

bar "trainc to emitted source, 12 layers" "$trainc_12" 2 s
bar "its largest resident size" "$memory_12" 1000 MB
bar "host compiler, 12 layers" "$host_12" 30 s
bar "trainc, 48 layers" "$trainc_48" "$(awk -v t="$trainc_12" 'BEGIN { printf "%.2f", 4 * t }')" s
bar "host compiler, 48 layers against 12" "$(ratio "$host_48" "$host_12")" 1.3 x
printf '%-52s %8s MB\n' "largest resident size, 48 layers" "$memory_48"
exit $failed
