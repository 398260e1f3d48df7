#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_ctl_log.sh RINGBUSCTL RINGBUSD [MEGABYTES]: a log goes through send --lines into recv
# --lines and is the same, byte for byte, in order; prints how fast it was.
set -eu
CTL=$1
RINGBUSD=$2
megabytes=${3:-20}
. "$(dirname "$0")/test_ctl_setup.sh"
path=/Demo/cn/pc/w1/g1/Log/1

# Lines of 0 to 200 bytes, each with its number, some with bytes that are not text.
awk -v size="$((megabytes * 1000000))" 'BEGIN {
    pad = "the quick brown fox jumps over the lazy dog; "
    while (length(pad) < 200) pad = pad pad
    for (n = 1; total < size; n++) {
        line = n % 50 == 0 ? "" : n " \001\377 " substr(pad, 1, n * 7919 % 180)
        total += length(line) + 1
        print line
    }
}' >"$work/log"

daemon_start
background copy "$CTL" recv --lines $path
receiver=$last
until_true "recv is not there" "$CTL" show $path
begin=$(date +%s%N)
"$CTL" send --lines --json $path <"$work/log" >"$work/report"
end=$(date +%s%N)
finish $receiver 0
cmp "$work/log" "$work/copy" || fail "the copy differs"
lines=$(wc -l <"$work/log")
holds "\"messages\":$lines," "$work/report"
holds '"undelivered":0' "$work/report"
echo "$(wc -c <"$work/log") bytes, $lines lines in $(((end - begin) / 1000000)) ms: $((lines * 1000 / ((end - begin) / 1000000))) lines/s"
