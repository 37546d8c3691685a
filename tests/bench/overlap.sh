#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How much of the exchange of gradients two ranks of one thread hide after the backward pass: `profile` of a trainer on
# made-up data, in turns. `behind` and `overlapped` have two cores for all threads, so that the exchange takes the
# backward pass's time; `one core` and `a core more` have both ranks' own threads on the first core, and what exchanges
# on the first or the second. The second of these is what a rank sees that has a core to spare. For a machine that does
# nothing else.
#
#   tests/bench/overlap.sh TRAINER [STEPS [ROUNDS]]      default 5 and 3; inputs may be named in OPTIONS
set -euo pipefail
trainer=$1 steps=${2:-5} rounds=${3:-3}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
export OMPI_MCA_hwloc_base_binding_policy=none
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
IFS=, read -r first second _ < <(taskset -cp $$ | sed 's/.*: //; s/-/,/')

# measured NAME WHEN [WORDS...]: with these words before it
measured() {
  local name=$1 when=$2 pinned
  shift 2
  "$@" mpirun -n 2 "$trainer" profile --steps "$steps" --shard optimizer --exchange "$when" ${OPTIONS:-} -o "$scratch/profile.json" \
    >"$scratch/said" 2>&1 &
  local launcher=$!
  if [ "$name" = "a core more" ]; then
    pinned=0
    while [ $pinned -lt 2 ] && kill -0 $launcher; do # both are there before the first step
      pinned=0
      for thread in $(pgrep -P $launcher | xargs -I{} sh -c 'ls -d /proc/{}/task/*' 2>/dev/null); do
        [ "$(cat "$thread/comm" 2>/dev/null)" != exchange ] || { taskset -cp "$second" "${thread##*/}" >/dev/null && pinned=$((pinned + 1)); }
      done
      sleep 0.05
    done
  fi
  wait $launcher || { cat "$scratch/said"; exit 1; }
  python3 - "$name" "$scratch/profile.json" <<'EOF'
import json, sys
profile = json.load(open(sys.argv[2]))
for rank in profile["ranks"]:
    of = rank["exchange"]
    print(f"{sys.argv[1]:12} rank {rank['rank']}: step {profile['seconds']:.3f} s, exchange from {of['begin']:.3f} to "
          f"{of['end']:.3f}, additions {of['adding']:.3f} s, overlapped {100 * of['overlapped']:.1f} %, exposed {of['exposed']:.3f} s")
EOF
}

for _ in $(seq "$rounds"); do
  echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg)"
  measured behind behind
  measured overlapped overlapped
  measured "one core" behind taskset -c "$first"
  measured "a core more" overlapped taskset -c "$first"
done
