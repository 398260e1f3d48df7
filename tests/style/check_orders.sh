#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every acquire, release and sequentially consistent access of shared memory has a label
# in the comment before it, and every label has its partner:
#
#   /* R1: pairs with A1. */            partner in a file of the same object: lane.c, lane_inline.h
#   /* R3: pairs with A3 (pool.c). */   partner in another object's file
#   /* A2: pairs with R2. B8: pairs with B5. */   one access, two orders
#
# R is a release (store), A an acquire (load), B a side of the bell's pair, which needs
# rbi_load_seq or rbi_store_seq. Usage: check_orders.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
files=$(for folder in shm bus libclient; do
    [ -d "$folder" ] && find "$folder" -name '*.[ch]' ! -path shm/atomic.h
done | LC_ALL=C sort)
[ -n "$files" ] || { echo "check_orders: no sources"; exit 1; }
# shellcheck disable=SC2086 # a list of words is meant
awk '
# The object that a file belongs to: its name up to the first "_" or ".".
function object(path) { sub(/.*\//, "", path); sub(/[_.].*/, "", path); return path }
function complain(text) { print FILENAME ":" FNR ": " text; bad = 1 }
FNR == 1 { live = 0; home = object(FILENAME) }
{
    rest = $0
    while (match(rest, /[RAB][0-9]+: pairs with [RAB][0-9]+( \([a-z0-9_.]+\))?/)) {
        label = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if (!live) { has_r = has_a = has_b = 0 }
        live = FNR
        mine = label; sub(/:.*/, "", mine)
        other = label; sub(/.*pairs with /, "", other)
        where = home
        if (other ~ /\(/) { where = other; sub(/.*\(/, "", where); where = object(where); sub(/ .*/, "", other) }
        if (mine ~ /^R/) has_r = 1
        if (mine ~ /^A/) has_a = 1
        if (mine ~ /^B/) has_b = 1
        kinds = substr(mine, 1, 1) substr(other, 1, 1)
        if (kinds != "RA" && kinds != "AR" && kinds != "BB") complain(mine " cannot pair with " other)
        key = home " " mine
        if (key in partner && partner[key] != where " " other)
            complain(mine " pairs with " other " here and with " partner[key] " elsewhere")
        partner[key] = where " " other
        place[key] = FILENAME ":" FNR
    }
}
/rbi_(load_acq|load_seq|store_rel|store_seq)\(/ {
    if (!live || FNR - live > 6) {
        complain("ordered access without a label before it")
    } else {
        store = $0 ~ /rbi_store_(rel|seq)\(/
        seq = $0 ~ /rbi_(load|store)_seq\(/
        if (store && has_a) complain("an A label stands before a store")
        if (!store && has_r) complain("an R label stands before a load")
        if (has_b && !seq) complain("a B label needs a sequentially consistent access")
        if (seq && !has_b) complain("sequential consistency is for the bell: a B label is missing")
    }
    live = 0
}
END {
    for (key in partner) {
        other = partner[key]
        split(key, k, " ")
        split(other, o, " ")
        if (!(other in partner)) {
            print place[key] ": " k[2] " pairs with " o[2] ", but " o[1] " has no " o[2]; bad = 1
        } else {
            split(partner[other], back, " ")
            if (back[2] != k[2]) {
                print place[key] ": " k[2] " pairs with " o[2] ", but " o[2] " pairs with " back[2]; bad = 1
            }
        }
    }
    exit bad
}
' $files
