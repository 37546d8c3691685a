#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A long run of two ranks that writes a checkpoint every minute: resident memory, descriptors and
# threads of both ranks must not grow. Called by tests/reliability.sh.
#
#   tests/train/soak.sh FOLDER     MINUTES: how long (default 120)
#
# Leaves samples.tsv in the folder, a line a minute and rank. The first tenth is warm-up; after it
# a rank may gain 1 MB of its own memory an hour (the page cache of mapped files is not its own).
. "$(dirname "$0")/harness.sh"

minutes=${MINUTES:-120}
find /usr/share/common-licenses -type f | LC_ALL=C sort | xargs cat >text.bin
quietly "$TRAINC_FILL" "$TRAINC_MODELS/graphs/bytes_4.onnx" -o gpt.onnx
quietly "$TRAINC" gpt.onnx --dim batch=8 --dim sequence=128 --loss cross_entropy --optimizer adamw -o gpt

mpirun -n 2 gpt/trainer train --tokens text.bin --holdout 0.1 --learning-rate 1e-3 --steps 100000000 \
  --run run --checkpoint-every 1min --keep 3 --evaluate-every 500 --no-progress >run.txt 2>&1 &
launcher=$!
trap 'kill -9 $launcher $ranks 2>/dev/null || true' EXIT
for _ in $(seq 600); do
  ranks=$(pgrep -P $launcher -x trainer || true)
  [ "$(cat run/log.jsonl 2>/dev/null | grep -c loss)" -lt 2 ] || break
  sleep 0.1
done

field() { sed -n "s/^$1:[[:space:]]*\([0-9]*\).*/\1/p" "/proc/$2/status"; }
printf 'minute\trank\tresident_kb\town_kb\tshared_kb\tdescriptors\tthreads\tsteps\tcheckpoints\n' >samples.tsv
for ((minute = 1; minute <= minutes; minute++)); do
  sleep 60
  rank=0
  for process in $ranks; do
    [ -d "/proc/$process" ] || { cat run.txt; fail "a rank ended in minute $minute"; }
    printf '%s\t' $minute $rank "$(field VmRSS "$process")" "$(field RssAnon "$process")" \
      "$(field RssShmem "$process")" "$(ls "/proc/$process/fd" | wc -l)" "$(field Threads "$process")" \
      "$(grep -c '"loss"' run/log.jsonl)"
    basename "$(find run/checkpoints -maxdepth 1 -name 'step-*' | sort | tail -1)"
    rank=$((rank + 1))
  done >>samples.tsv
done
kill -TERM $ranks
stopped $launcher run.txt
trap - EXIT
quietly gpt/trainer checkpoints verify --run run

awk -F '\t' -v minutes="$minutes" '
  NR == 1 { next }
  $1 == int(minutes / 10) + 1 { own[$2] = $4; shared[$2] = $5; open[$2] = $6; threads[$2] = $7; from[$2] = $1 }
  { last_own[$2] = $4; last_shared[$2] = $5; last_open[$2] = $6; last_threads[$2] = $7; last[$2] = $1; steps = $8 }
  END {
    for (rank in own) {
      hours = (last[rank] - from[rank]) / 60
      printf "soak: rank %d, %d steps: own memory %d to %d kB, shared %d to %d kB, descriptors %d to %d, threads %d to %d in %.2f h\n",
        rank, steps, own[rank], last_own[rank], shared[rank], last_shared[rank], open[rank], last_open[rank],
        threads[rank], last_threads[rank], hours
      if (last_own[rank] - own[rank] > 1024 * (hours > 1 ? hours : 1) || last_shared[rank] > shared[rank] + 1024 ||
          last_open[rank] > open[rank] || last_threads[rank] > threads[rank])
        grew = 1
    }
    exit grew
  }' samples.tsv || fail "a rank grows"
