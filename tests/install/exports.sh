#!/usr/bin/env bash
# A shared library has the SONAME it promises and exports this project's names
# alone, whatever its dependencies are: exports.sh <library> <soname>
set -euo pipefail
library=$1 soname=$2

if ! readelf -d "$library" | grep -qF "soname: [$soname]"; then
  readelf -d "$library" | grep -i soname
  echo "expected SONAME $soname"
  exit 1
fi

names=$(nm -D --defined-only "$library" | cut -d' ' -f3)
ours='^_Z(T[ISV]|T[hv][n0-9_]*)?NK?12vllm_metrics'
if ! grep -qE "$ours" <<<"$names"; then
  echo "$library exports nothing of vllm_metrics"
  exit 1
fi
if grep -vE "$ours" <<<"$names" | c++filt | grep .; then
  echo "the names above are exported and should not be"
  exit 1
fi
