#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# count_syscalls_asleep.sh ASLEEP RINGBUSD [MESSAGES]: system calls of a message that wakes its
# receiver, at the sender and at the receiver. strace slows both, which changes no count here.
set -eu
asleep=$1
ringbusd=$2
messages=${3:-500}
command -v strace >/dev/null || { echo "strace is not installed: skipped"; exit 77; }
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
strace -f -o "$trace" "$asleep" "$ringbusd" "$messages" >/dev/null
# Each line begins with the process; a call that another interrupts has a second line.
awk -v messages="$messages" '
    $2 ~ /^getppid/ { marks++; sender = $1; next }
    marks != 1 || /resumed>/ || $2 ~ /^clock_nanosleep/ || $2 == "---" { next }
    { n[$1 == sender]++ }
    END {
        if (marks != 2) exit 1
        printf "%.3f %.3f system calls of the sender and of the receiver a message\n", \
            n[1] / messages, n[0] / messages
    }' "$trace"
