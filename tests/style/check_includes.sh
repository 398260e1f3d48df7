#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes point downwards only: shm <- bus <- {libclient, daemon}; examples see the
# public header alone; bus is pure. Usage: check_includes.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
files=$(for folder in shm bus libclient measure daemon examples; do
    [ -d "$folder" ] && find "$folder" -name '*.[ch]'
done | LC_ALL=C sort)
[ -n "$files" ] || { echo "check_includes: no sources"; exit 1; }
# shellcheck disable=SC2086 # a list of words is meant
awk '
BEGIN {
    allowed["shm"] = "shm"
    allowed["bus"] = "bus shm"
    allowed["libclient"] = "libclient bus shm ringbus"
    allowed["measure"] = "measure"
    allowed["daemon"] = "daemon bus shm measure ringbus"
    allowed["examples"] = "ringbus"
    # No I/O, no threads, no clock: time is an argument.
    impure = "^(sys/(socket|epoll|mman|stat|time|un|uio|eventfd|timerfd|wait)|pthread|threads|time|" \
             "unistd|fcntl|poll|signal|liburing)[.]h$"
}
function complain(text) { print FILENAME ":" FNR ": " text; bad = 1 }
# A header beside the including file needs no folder in front.
function beside(name,    path, line, there) {
    path = FILENAME
    sub(/[^\/]*$/, name, path)
    there = (getline line < path) >= 0
    close(path)
    return there
}
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    folder = FILENAME; sub(/\/.*/, "", folder)
    name = $0; sub(/^[^"<]*["<]/, "", name); sub(/[">].*/, "", name)
    top = name; sub(/\/.*/, "", top)
    quoted = $0 ~ /include[ \t]*"/
    if (folder == "bus" && name ~ impure) complain("bus is pure and may not include " name)
    if (!quoted && top != "ringbus") next
    if (index(" " allowed[folder] " ", " " top " ") && name ~ /\//) next
    if (name !~ /\// && beside(name)) next
    complain(folder " may not include " name " (only: " allowed[folder] ")")
}
END { exit bad }
' $files
