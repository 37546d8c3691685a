# SPDX-License-Identifier: Apache-2.0
#
# Several hosts of this one machine, for tests that source this file in place of harness.sh: each has a network, a name,
# shared memory and a disk of its own, at $PWD/disk, and they are joined by one switch. The test begins anew in
# namespaces, which end with it, and all that is in them. Where the system allows none, it says so and ends.
#
# Host N is node0N with the address 10.55.0.1N. The working directory is one of all hosts.
if [ -z "${TRAINC_IN_HOSTS:-}" ]; then
  if ! unshare -rnmp --fork --mount-proc ip link add switch type bridge 2>/dev/null; then
    echo "== ends here: the system allows no networks of its own"
    exit 0
  fi
  TRAINC_IN_HOSTS=1 exec unshare -rnmp --fork --kill-child --mount-proc bash "$0" "$@"
fi
. "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

export HOSTS=$PWD/hosts
mkdir -p "$HOSTS" disk
printf '%s\n' '#!/bin/bash' '# As ssh: ADDRESS COMMAND...' 'host=${1##*.1}' 'shift' \
  'exec nsenter -t "$(cat "$HOSTS/$host")" -m -u -n -- bash -c "$*"' >"$HOSTS/agent"
chmod +x "$HOSTS/agent"
between_hosts=(OMPI_MCA_plm_rsh_agent="$HOSTS/agent" OMPI_MCA_btl=self,vader,tcp OMPI_MCA_pml=ob1
  OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0
  OMPI_MCA_oob_tcp_keepalive_time=2 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=3)

# set_up COUNT: so many hosts
set_up() {
  ip link set lo up
  ip link add switch type bridge
  ip link set switch up
  local host
  for ((host = 1; host <= $1; host++)); do
    start_host $host
  done
}

# start_host N: with an empty disk
start_host() {
  rm -f "$HOSTS/$1"
  unshare -nmu bash -c "hostname node0$1 && mount -t tmpfs none /dev/shm && mount -t tmpfs none disk &&
    echo \$\$ >'$HOSTS/$1.new' && mv '$HOSTS/$1.new' '$HOSTS/$1' && exec sleep infinity" >/dev/null 2>&1 </dev/null &
  disown
  wait_until 10 test -e "$HOSTS/$1" || fail "host $1 does not start"
  ip link add port$1 type veth peer name eth0 netns "$(cat "$HOSTS/$1")"
  ip link set port$1 master switch up
  on $1 bash -c "ip link set lo up && ip addr add 10.55.0.1$1/24 dev eth0 && ip link set eth0 up"
}

# kill_host N: all that runs there, and its disk; at once, else its daemon's end has time to stop the ranks
kill_host() {
  local network process processes=()
  network=$(readlink "/proc/$(cat "$HOSTS/$1")/ns/net")
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/net")" != "$network" ] || processes+=("${process#/proc/}")
  done
  kill -KILL "${processes[@]}" 2>/dev/null || true
  ip link del port$1 2>/dev/null || true # it goes with the host, a moment later
}

# on N COMMAND...: there, in this folder, which is looked up anew among the host's mounts
on() {
  local host=$1
  shift
  nsenter -t "$(cat "$HOSTS/$host")" -m -u -n -- bash -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

# over_hosts "1:2 2:2" ARGUMENTS...: mpirun on host 1, with so many ranks on each
over_hosts() {
  local host places=
  for host in $1; do
    places+=${places:+,}10.55.0.1$host
  done
  shift
  on 1 env "${between_hosts[@]}" mpirun --host "$places" "$@"
}

cut_link() { ip link set port$1 down; }
mend_link() { ip link set port$1 up; }
