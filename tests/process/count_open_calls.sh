#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# count_open_calls.sh OPEN_CALLS: what an endpoint and the daemon ask of the kernel while the
# endpoint opens and while it gets a link. Each of these calls was measured to cost time.
set -eu
command -v strace >/dev/null || { echo "strace is not installed: skipped"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace: skipped"; exit 77; }
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
strace -f -o "$trace" "$1" >/dev/null
# Each line begins with the process; a call that another interrupts has a second line.
awk '
    function expect(what, count, least, most) {
        if (count < least || count > most) {
            printf "%s: %d, expected %d to %d\n", what, count, least, most
            bad = 1
        }
    }
    /resumed>/ { next }
    $2 ~ /^getppid/ { marks++; own = $1; next }
    marks < 1 || marks > 2 { next }
    {
        call = $2
        sub(/\(.*/, "", call)
        who = $1 == own ? "client" : "daemon"
        n[marks, who, call]++
    }
    /"\/proc\/meminfo"/ { n[marks, who, "meminfo"]++ }
    /MAP_SHARED/ { n[marks, who, "shared"]++ }
    marks == 1 && who == "client" && call ~ /^(connect|sendmsg|fallocate)$/ {
        order = order " " call
    }
    END {
        expect("marks", marks, 3, 3)
        # Memory is asked for once, for pool and page together, and after HELLO is under way.
        expect("open: looks at the memory left", n[1, "client", "meminfo"], 1, 1)
        if (order != " connect sendmsg fallocate fallocate sendmsg") {
            print "open: order is" order
            bad = 1
        }
        # The answers to HELLO and to REGISTER; the first is mostly there already.
        expect("open: waits for the daemon", n[1, "client", "poll"], 0, 2)
        # What it only passes on it does not map: of an endpoint its page alone, of a link nothing.
        expect("open: mappings of the daemon", n[1, "daemon", "shared"], 1, 1)
        expect("open: headers that the daemon reads", n[1, "daemon", "pread64"], 1, 1)
        expect("link: looks at the memory left", n[2, "client", "meminfo"], 2, 2)
        expect("link: mappings of the daemon", n[2, "daemon", "shared"], 0, 0)
        expect("link: headers that the daemon reads", n[2, "daemon", "pread64"], 2, 2)
        exit bad
    }' "$trace"
