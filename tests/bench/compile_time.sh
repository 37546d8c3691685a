#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Time and memory of compiling GPT-2 with 12 and with 48 layers: trainc to emitted
# source, then the host compiler on that source. Prints each bar and whether it holds.
#
#   compile_time.sh [--build FOLDER] [--scratch FOLDER]
# shellcheck disable=SC2154 # read into names put together with the number of layers
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
minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a - b }'; }
best() { # of three runs of a command, by time
  for _ in 1 2 3; do
    CCACHE_DISABLE=1 python3 "$here/measure.py" "$@"
  done | sort -n | head -1
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

for layers in 12 48; do
  "$build/bin/trainc-fill" "$root/tests/models/graphs/gpt2_$layers.onnx" -o "gpt2_$layers.onnx" >/dev/null
  cat "gpt2_$layers.onnx.data" >/dev/null # in the page cache for every run alike
  compile=("$build/bin/trainc" "gpt2_$layers.onnx" --dim batch=4 --dim sequence=64
    --loss cross_entropy --optimizer adamw)
  read -r "trainc_$layers" "memory_$layers" <<<"$(best "${compile[@]}" --source-only -o "out_$layers")"
  # the whole way, of which the host compiler is the rest
  read -r "whole_$layers" _ <<<"$(best "${compile[@]}" -o "out_$layers")"
done
host_12=$(minus "$whole_12" "$trainc_12")
host_48=$(minus "$whole_48" "$trainc_48")
cmake -S out_12/source -B project >cmake.log || { cat cmake.log && exit 1; }
read -r project _ <<<"$(python3 "$here/measure.py" cmake --build project -j2 2>project.log)"

bar "trainc to emitted source, 12 layers" "$trainc_12" 2 s
bar "its largest resident size" "$memory_12" 1000 MB
bar "host compiler, 12 layers" "$host_12" 30 s
bar "trainc, 48 layers" "$trainc_48" "$(awk -v t="$trainc_12" 'BEGIN { printf "%.2f", 4 * t }')" s
bar "host compiler, 48 layers against 12" "$(ratio "$host_48" "$host_12")" 1.3 x
printf '%-52s %8s s\n' "the emitted project with the runtime's sources, -j2" "$project"
printf '%-52s %8s MB\n' "largest resident size, 48 layers" "$memory_48"
exit $failed
