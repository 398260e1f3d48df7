#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Searches tests/model/link.pml completely. usage: link.sh SOURCE_DIR [C_COMPILER]
set -eu
command -v spin >/dev/null || { echo "spin is not installed: skipped"; exit 77; }
model=$1/tests/model/link.pml
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
spin -a -DBUDGET=3 "$model" >spin.log 2>&1 || { cat spin.log; exit 1; }
"${2:-cc}" -O2 -w -DSAFETY -DNOFAIR -DMEMLIM=512 -o pan pan.c
./pan -m100000 >pan.log 2>&1 || true
grep -q 'errors: 0' pan.log && ! grep -q 'max search depth too small\|out of memory' pan.log || {
    cat pan.log
    [ ! -f link.pml.trail ] || spin -p -t -DBUDGET=3 -k link.pml.trail "$model" | tail -60
    exit 1
}
grep 'states, stored' pan.log
