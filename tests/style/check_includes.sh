#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes point downwards only: shm <- bus <- {libclient, daemon}; examples see the
# public header alone; bus is pure. Usage: check_includes.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
bad=0

# allowed FOLDER PREFIX...: quoted includes of FOLDER begin with one of the prefixes, or
# name a file beside the including one.
allowed() {
    folder=$1
    shift
    [ -d "$folder" ] || return 0
    prefixes=$(printf '|%s/' "$@")
    prefixes=${prefixes#|}
    find "$folder" -name '*.[ch]' | LC_ALL=C sort >"$list"
    while IFS= read -r file; do
        grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*("|<ringbus/)' "$file" >"$hits" || continue
        while IFS=: read -r line text; do
            name=$(printf '%s\n' "$text" | sed -E 's/^[^"<]*["<]([^">]*)[">].*/\1/')
            printf '%s\n' "$name" | grep -qE '\.\./' && beside='' || beside=$(dirname "$file")/$name
            printf '%s\n' "$name" | grep -qE "^($prefixes)" && continue
            case $name in
            */*) ;;
            *) [ -n "$beside" ] && [ -f "$beside" ] && continue ;;
            esac
            echo "$file:$line: $folder may not include $name (only: $*)"
            bad=1
        done <"$hits"
    done <"$list"
}

list=$(mktemp)
hits=$(mktemp)
trap 'rm -f "$list" "$hits"' EXIT

allowed shm shm
allowed bus bus shm
allowed libclient libclient bus shm ringbus
allowed daemon daemon bus shm ringbus
allowed examples ringbus

# bus/ has no I/O, no threads and no clock: time is an argument.
if [ -d bus ] && grep -rnE '#[[:space:]]*include[[:space:]]*<(sys/(socket|epoll|mman|stat|time|un|uio|eventfd|timerfd|wait)|pthread|threads|time|unistd|fcntl|poll|signal|liburing)\.h>' \
    bus --include='*.c' --include='*.h'; then
    echo "bus: pure, may not include the headers above"
    bad=1
fi
exit $bad
