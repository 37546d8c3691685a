#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Time and memory of compiling GPT-2 with 12 and with 48 layers: trainc to emitted
# source, then the host compiler on that source; with 12 layers also for CUDA. The two
# sizes alternate and a ratio is the median of the pairs' ratios; files that wait to be
# written reach the disk before a time is taken. Prints each bar and whether it holds.
#
#   compile_time.sh [--build FOLDER] [--scratch FOLDER] [--pairs N]
# shellcheck disable=SC2154 # read into names put together with the number of layers
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/release
scratch=
pairs=5
while [ $# -gt 0 ]; do
  case $1 in
  --build) build=$(cd "$2" && pwd) && shift 2 ;;
  --scratch) scratch=$2 && shift 2 ;;
  --pairs) pairs=$2 && shift 2 ;;
  *) sed -n '3,9s/^# \?//p' "$0" && exit 2 ;;
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
median() { sort -g "$@" | awk '{ v[NR] = $1 } END { printf "%.2f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
median_ratio() { paste "$1" "$2" | awk '{ print $1 / $2 }' | median; }

rm -f source_* memory_* host_* # of an earlier run in this folder
for layers in 12 48; do
  "$build/bin/trainc-fill" "$root/tests/models/graphs/gpt2_$layers.onnx" -o "gpt2_$layers.onnx" >/dev/null
done
for _ in $(seq "$pairs"); do
  for layers in 12 48; do
    compile=("$build/bin/trainc" "gpt2_$layers.onnx" --dim batch=4 --dim sequence=64
      --loss cross_entropy --optimizer adamw -o "out_$layers")
    rm -rf "out_$layers"
    cat "gpt2_$layers.onnx.data" >/dev/null # in the page cache for every run alike
    sync
    read -r seconds megabytes <<<"$(python3 "$here/measure.py" "${compile[@]}" --source-only)"
    echo "$seconds" >>"source_$layers"
    echo "$megabytes" >>"memory_$layers"
    sync
    rm -f spans
    CCACHE_DISABLE=1 TIMED_COMPILER=$PWD/spans "${compile[@]}" --host-compiler "$here/timed_compiler.sh"
    awk 'NR == 1 || $1 < first { first = $1 } $2 > last { last = $2 } END { print last - first }' \
      spans >>"host_$layers"
  done
done
cuda=("$build/bin/trainc" gpt2_12.onnx --dim batch=4 --dim sequence=64 --target cuda -o out_cuda)
for _ in 1 2 3; do
  rm -rf out_cuda
  sync
  python3 "$here/measure.py" "${cuda[@]}" --source-only >>source_cuda
done
nvcc=
if { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; } && [ -e "$build/lib/libtrainc_cuda.a" ]; then
  sync
  read -r nvcc _ <<<"$(python3 "$here/measure.py" "${cuda[@]}")"
fi
cmake -S out_12/source -B project >cmake.log || { cat cmake.log && exit 1; }
read -r project _ <<<"$(python3 "$here/measure.py" cmake --build project -j2 2>project.log)"

echo "medians of $pairs pairs of runs"
bar "trainc to emitted source, 12 layers" "$(median source_12)" 2 s
bar "its largest resident size" "$(sort -g memory_12 | tail -1)" 1000 MB
bar "host compiler, 12 layers" "$(median host_12)" 30 s
bar "trainc, 48 layers against 12" "$(median_ratio source_48 source_12)" 4 x
bar "host compiler, 48 layers against 12" "$(median_ratio host_48 host_12)" 1.3 x
bar "trainc --target cuda to emitted source, 12 layers" "$(median source_cuda)" 2 s
if [ -n "$nvcc" ]; then
  bar "the same with nvcc for the default architectures" "$nvcc" 60 s
else
  echo "skipped nvcc: not found"
fi
printf '%-52s %8s s\n' "the emitted project with the runtime's sources, -j2" "$project"
printf '%-52s %8s MB\n' "largest resident size, 48 layers" "$(sort -g memory_48 | tail -1)"
exit $failed
