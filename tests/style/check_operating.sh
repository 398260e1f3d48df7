#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/operating.md explains everything that the bus says to an operator, and nothing that it
# does not say. A table whose first column is headed "log line", "reason", "error", "event",
# "daemon's figure" or "endpoint's counter" is complete: its first cells name, in backquotes, what
# the sources have; codes have their value behind the name. Usage: check_operating.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
document=docs/operating.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
header=$scratch/header # the public one, all of its parts
cat libclient/include/ringbus/*.h >"$header"

fail() {
    printf '%s\n' "$1"
    : >"$scratch/failed" # a variable would be lost with the shell of a pipe
}

# Second argument of each call of rbi_log(): one literal, or a choice of literals.
events() {
    find daemon -name '*.c' -exec cat {} + | tr '\n' ' ' |
        grep -oE '\brbi_log\([^,;]*,[^,;]*,' | grep -v 'const char \*event' || true
}
# NAME VALUE of each member of an enum that gives every value.
members() { # members PREFIX
    grep -oE "\b$1[A-Z_]+ = -?[0-9]+" "$header" | sed 's/ = / /'
}
# First argument of each X() in a list macro.
listed() { # listed FILE MACRO
    awk -v macro="#define $2(X)" '
        index($0, macro) == 1 { on = 1 }
        on { print }
        on && !/\\$/ { exit }' "$1" |
        grep -oE 'X\([a-z_]+[,)]' | sed 's/^X(//; s/[,)]$//'
}
# What the document explains in the tables with this heading.
explained() { # explained HEADING
    awk -v heading="| $1 |" '
        !/^\|/ { on = 0; next }
        index($0, heading) == 1 { on = 1; next }
        on { split($0, cells, "|"); print cells[2] }' "$document" |
        grep -oE '`[A-Za-z_]+`( -?[0-9]+)?' | sed 's/`//g' || true
}
same() { # same HEADING: the names on standard input are those of the table
    sort -u | sed 's/ /=/' >"$scratch/said"
    explained "$1" | sort | sed 's/ /=/' >"$scratch/explained"
    [ -s "$scratch/said" ] || fail "$document: nothing in the sources for its table of $1"
    for line in $(grep -vxF "$(cat "$scratch/explained")" "$scratch/said"); do
        fail "$document: no line for $1 $(printf '%s' "$line" | tr = ' ')"
    done
    for line in $(grep -vxF "$(cat "$scratch/said")" "$scratch/explained"); do
        fail "$document: explains $1 $(printf '%s' "$line" | tr = ' '), which nothing says"
    done
    for line in $(uniq -d "$scratch/explained"); do
        fail "$document: explains $1 $(printf '%s' "$line" | tr = ' ') twice"
    done
}

events >"$scratch/calls"
if grep -v '"' "$scratch/calls"; then
    fail "daemon: a call of rbi_log() whose event is no literal cannot be held against $document"
fi
grep -oE '"[a-z_]+"' "$scratch/calls" | tr -d '"' | same "log line"
members RINGBUS_REASON_ | grep -v 'REASON_NONE' | same "reason"
members RINGBUS_EVENT_ | same "event"
sed -nE 's/^ *X\(([A-Z_]+), (-[0-9]+), .*/RINGBUS_E_\1 \2/p' "$header" | same "error"
{
    sed -nE 's/^ *\{"([a-z_]+)", (status|rbi_query)_[a-z_]+\},$/\1/p' daemon/query.c
    listed daemon/daemon.h RBI_DAEMON_COUNTERS
} | same "daemon's figure"
listed "$header" RINGBUS_STATS | same "endpoint's counter"
[ ! -e "$scratch/failed" ]
