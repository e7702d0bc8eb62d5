#!/usr/bin/env bash
# Builds and runs a program with pkg-config's flags and nothing else:
#   pkg_config.sh <compiler> <installed lib folder> <source> <component>
set -euo pipefail
compiler=$1 lib=$2 source=$3 component=$4

export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
read -ra flags <<<"$(pkg-config --cflags --libs "vllm_metrics-$component")"
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"$compiler" -std=c++20 "$source" "${flags[@]}" -o "$program"
"$program"
