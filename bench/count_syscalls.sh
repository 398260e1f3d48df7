#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# count_syscalls.sh BUSY RINGBUSD [MESSAGES]: system calls that busy messages make; the bar is 0.
set -eu
busy=$1
ringbusd=$2
messages=${3:-10000000}
command -v strace >/dev/null || { echo "strace is not installed: skipped"; exit 77; }
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
strace -o "$trace" "$busy" "$ringbusd" "$messages" >/dev/null
# What lies between the two marks.
calls=$(awk '/^getppid/ { marks++; next } marks == 1 { n++; print > "/dev/stderr" } END { print marks == 2 ? n + 0 : "no" }' "$trace")
echo "$calls system calls in $messages busy messages  bar 0 $([ "$calls" = 0 ] && echo PASS || echo SHORT)"
[ "$calls" = 0 ]
