#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what trainc needs to build, test and run on Debian 12, and nothing
# that is already there. The one place that names packages.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache make pkg-config git python3 # build; python3 runs lit
  libmlir-19-dev mlir-19-tools llvm-19-dev llvm-19-tools    # MLIR, FileCheck, lit
  zlib1g-dev libzstd-dev libcurl4-openssl-dev libedit-dev   # what LLVM's CMake files look for
  libonnx-dev libprotobuf-dev protobuf-compiler             # reading ONNX
  libonnx-testdata                                          # operator tests of the ONNX suite
  libdnnl-dev libopenmpi-dev openmpi-bin                    # matrix products, ranks
  nlohmann-json3-dev                                        # safetensors headers, logs
  libjpeg-dev libpng-dev libpcre2-dev                       # images and text of trainc-data
  libgtest-dev libgmock-dev                                 # unit tests
  libboost-context-dev                                      # threads of kernels in tests without a GPU
  clang-format-14 clang-tidy-14                             # style checks of the tests
  clang-14 libclang-rt-14-dev                               # fuzzers of the tests
  iproute2                                                  # networks between hosts, in tests
  g++-aarch64-linux-gnu qemu-user                           # libraries for another processor, in tests
)

missing=()
for package in "${packages[@]}"; do
  if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
    missing+=("$package")
  fi
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}"
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: not root and no sudo; install by hand: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
log=$(mktemp)
if ! { "${sudo[@]}" apt-get update -qq &&
       "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  echo "setup: apt-get failed; its output is in $log" >&2
  exit 1
fi
rm -f "$log"
