#!/usr/bin/env bash
# Makes the Debian package of a build and lays its /usr into a folder:
#   unpack_deb.sh <cpack> <build folder> <folder>
set -euo pipefail
cpack=$1 build=$2 folder=$3

rm -rf "$folder"
"$cpack" -G DEB --config "$build/CPackConfig.cmake" -B "$folder"
dpkg-deb --fsys-tarfile "$folder"/vllm-metrics_*.deb |
  tar x --strip-components=2 -C "$folder"
