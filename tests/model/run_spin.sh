#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Searches a Promela model completely. usage: run_spin.sh MODEL.pml BUDGET [C_COMPILER]
set -eu
command -v spin >/dev/null || { echo "spin is not installed: skipped"; exit 77; }
model=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
budget=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
spin -a "-DBUDGET=$budget" "$model" >spin.log 2>&1 || { cat spin.log; exit 1; }
"${3:-cc}" -O2 -w -DSAFETY -DNOFAIR -DMEMLIM=512 -o pan pan.c
./pan -m1000000 >pan.log 2>&1 || true
grep -q 'errors: 0' pan.log && ! grep -q 'max search depth too small\|out of memory' pan.log || {
    cat pan.log
    [ ! -f "$(basename "$model").trail" ] ||
        spin -p -t "-DBUDGET=$budget" -k "$(basename "$model").trail" "$model" | tail -60
    exit 1
}
grep 'states, stored' pan.log
