#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Debian package of a build, checks it with lintian, installs it in a fresh Debian root with
# nothing but its declared dependencies, and runs the commands of the README there as an
# ordinary user. Needs root, lintian, debootstrap and Debian's archive.
#
#   tests/debian_package.sh [BUILD_FOLDER [ROOT]]
#
# ROOT, made by `debootstrap --variant=minbase bookworm ROOT`, saves making one; it is copied.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${TRAINC_PACKAGE_WORK:-}" = "" ]; then
  # All mounts are of a namespace that ends before anything is removed, and nothing of the host's is
  # mounted in the root.
  work=$(mktemp -d /var/tmp/trainc-package.XXXXXX)
  trap 'rm -rf --one-file-system "$work"' EXIT
  TRAINC_PACKAGE_WORK=$work unshare --mount --propagation private "$0" "$@"
  exit
fi
work=$TRAINC_PACKAGE_WORK
build=$(realpath "${1:-build/release}")
mirror=http://deb.debian.org/debian
say() { printf '\n== %s\n' "$*"; }

say 'the package'
(cd "$build" && cpack -G DEB -B "$work/cpack" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
package=$(echo "$work"/cpack/*.deb)
dpkg-deb -I "$package"
lintian --fail-on error "$package"

say 'a root'
if [ -n "${2:-}" ]; then
  cp -a "$2" "$work/root"
else
  debootstrap --variant=minbase bookworm "$work/root" $mirror >"$work/debootstrap.log" || { tail "$work/debootstrap.log"; exit 1; }
fi
cp /etc/resolv.conf "$work/root/etc/"
mount -t proc none "$work/root/proc"
mkdir -p "$work/root/dev/shm" # its device nodes are debootstrap's
mount -t tmpfs -o mode=1777 none "$work/root/dev/shm"
in_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/home/user chroot "$@"; }

say 'installed with its declared dependencies'
cp "$package" "$work/root/tmp/trainc.deb"
in_root "$work/root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
  --no-install-recommends /tmp/trainc.deb' >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log"; exit 1; }
in_root "$work/root" dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' trainc

say 'the commands of the README, by an ordinary user'
in_root "$work/root" useradd -m user
cp tests/models/graphs/bytes_4.onnx "$work/root/home/user/"
head -c 20000 /dev/urandom >"$work/root/home/user/text.bin"
{
  echo 'set -ex; cd; export OMPI_MCA_rmaps_base_oversubscribe=1; trainc --version'
  echo 'trainc-fill bytes_4.onnx -o model.onnx'
  sed -n '/^## Your own model/,/^## What it can do/s/^    //p' README.md |
    sed 's/--steps 1000/--steps 3/; s/--dim batch=4/--dim batch=4 --dim sequence=64/'
  echo 'ls -l trained.onnx /usr/share/man/man1/trainc.1.gz'
} >"$work/root/home/user/commands.sh"
in_root --userspec=user:user "$work/root" bash /home/user/commands.sh
say 'all is well'
