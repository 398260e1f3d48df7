#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls and marks that do not belong into the tree. Usage: check_banned.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
bad=0
folders=""
for f in shm bus libclient daemon examples bench tests configs cmake; do
    [ -d "$f" ] && folders="$folders $f"
done
[ -n "$folders" ] || { echo "check_banned: no sources"; exit 1; }

# The bus itself: nothing of it may look at the wall clock.
core=""
for f in shm bus libclient daemon measure; do
    [ -d "$f" ] && core="$core $f"
done

# report TEXT: says what the lines on standard input are, if there are any.
report() {
    lines=$(cat)
    [ -z "$lines" ] && return 0
    printf '%s\n' "$lines" | sed "s/\$/  <- $1/" | cut -c1-240
    bad=1
}
# shellcheck disable=SC2086 # a list of words is meant
sources() { find $folders -name '*.[ch]' ! -path '*/corpus/*' -print0; }
# shellcheck disable=SC2086
texts() {
    find $folders \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.sh' -o -name '*.py' -o \
        -name '*.cmake' -o -name CMakeLists.txt -o -name '*.yaml' -o -name '*.pml' \) ! -path '*/corpus/*' -print0
    find . -maxdepth 1 \( -name CMakeLists.txt -o -name dev \) -print0
}
# Names by file and line, without failing where nothing is found.
look() { xargs -0 -r grep -nHE "$@" || true; }

report "unbounded or unsafe call" <<TEXT
$(sources | look '(^|[^a-zA-Z0-9_])(strcpy|strcat|sprintf|vsprintf|gets|alloca)[[:space:]]*\(')
TEXT
report "not random enough, or shared state: use a seeded generator" <<TEXT
$(sources | look '(^|[^a-zA-Z0-9_:])(rand|srand)[[:space:]]*\(')
TEXT
report "no error possible: use strtoul or a parser of ours" <<TEXT
$(sources | look '(^|[^a-zA-Z0-9_])(atoi|atol|atoll|atof)[[:space:]]*\(')
TEXT
# Steps of the wall clock must not end a link, expire a quota or move a deadline (scenario 42); a
# token's end is a date, and has a file of its own.
# shellcheck disable=SC2086 # a list of words is meant
report "the wall clock: take CLOCK_MONOTONIC; journald stamps the log" <<TEXT
$(find $core -name '*.[ch]' ! -path '*daemon/wall.c' -print0 |
    look '(^|[^a-zA-Z0-9_])((time|gettimeofday|ftime|localtime|gmtime|mktime)\(|CLOCK_(REALTIME|TAI))')
TEXT
report "open end" <<TEXT
$(sources | look '(^|[^a-zA-Z0-9_])(TODO|FIXME|XXX)([^a-zA-Z0-9_]|$)')
TEXT
report "trailing space" <<TEXT
$(texts | look '[[:space:]]+$')
TEXT
report "more than 100 columns" <<TEXT
$(sources | LC_ALL=C.UTF-8 look '^.{101,}')
TEXT
report "SPDX line missing in the first three lines" <<TEXT
$(texts | xargs -0 -r awk '
    FNR == 1 { if (name != "" && !found) print name; name = FILENAME; found = 0 }
    FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { found = 1 }
    END { if (name != "" && !found) print name }')
TEXT
exit $bad
