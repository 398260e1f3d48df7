#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_ctl_bench.sh RINGBUSCTL RINGBUSD: bench measures a running bus, names what refuses it,
# and leaves nothing behind, however it ends. What the figures are is not looked at: the
# machine may be busy with anything.
set -eu
CTL=$1
RINGBUSD=$2
. "$(dirname "$0")/test_ctl_setup.sh"
prefix=/Bench/local/host/w0/g0

# sides: process ids of both, once they are on the bus
two_there() {
    "$CTL" ls "$prefix" >"$work/sides" 2>/dev/null && [ "$(grep -c /ringbusctl/ "$work/sides")" -eq 2 ]
}
sides() {
    until_true "the two sides are not on the bus" two_there
    sed -n 's|^[^ ]*/ringbusctl/\([0-9]*\) .*|\1|p' "$work/sides"
}
# nothing_left PID...: no endpoint, and none of these processes
nothing_left() {
    until_true "an endpoint is left: $("$CTL" ls $prefix 2>&1)" sh -c "! '$CTL' ls $prefix"
    for pid in "$@"; do
        until_true "process $pid is left" sh -c "! kill -0 $pid"
    done
}
# ended PID CODE: waits for the end of a background command by itself
ended() {
    got=0
    wait "$1" || got=$?
    [ $got -eq "$2" ] || fail "bench ended with $got instead of $2: $(cat "$work"/*.err)"
}

# ---- nonsense is refused, with its limits ------------------------------------------------
refused() {
    text=$1
    shift
    expect 2 "$CTL" bench "$@"
    holds "$text" "$work/err"
}
refused "from 1 to 60" --seconds 0
refused "from 1 to 60" --seconds 61
refused "from 1 to 60" --seconds 1.5
refused "from 16 to 1048576" --size 15
refused "from 16 to 1048576" --size 1048577
refused "from 16 to 1048576" --size 48,,64
refused "from 16 to 1048576" --size 48,
refused "1 to 8 numbers" --size 16,16,16,16,16,16,16,16,16
refused "two cores" --cpus 0
refused "two cores" --cpus 0,1,2
refused "may not use core 1023" --cpus 0,1023
refused "exclude each other" --busy --sleep
refused "5 elements" --path /Bench/local/host/w0
refused "5 elements" --path /Bench/local/host/w0/g0/Cluster
refused "is not a path" --path /Bench/local/host/w0/g:0
refused "usage" $prefix
core=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
refused "needs two cores" --busy --cpus "$core,$core"
expect 3 "$CTL" bench
[ ! -s "$work/out" ] || fail "bench printed something without a daemon"

# ---- a whole run -------------------------------------------------------------------------
daemon_start
expect 0 "$CTL" bench --seconds 1 --size 48,20000 --json
json "$work/out"
python3 - "$work/out" <<'TEXT' || fail "figures: $(cat "$work/out")"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
of = lambda what: [row for row in rows if row["what"] == what]
modes = {"busy", "sleep"} if len({side["core"] for side in of("side")}) == 2 else {"sleep"}
for what, sizes in ("round trip", {48, 20000}), ("one way", {48, 20000}), ("request", {48}):
    assert {(row["mode"], row["size"]) for row in of(what)} == {(m, s) for m in modes for s in sizes}, what
for row in of("round trip") + of("request"):
    assert 0 < row["p50_ns"] <= row["p99_ns"] and row["blocks"] > 0 and row["ratio"] > 0, row
    assert row["regime"] in ("near", "far", "one core"), row
assert all(row["messages_per_s"] > 0 for row in of("one way"))
assert all(of(what)[0]["count"] == 11 and of(what)[0]["median_us"] > 0 for what in ("open", "introduce"))
assert of("checked")[0]["messages"] > 100 and of("checked")[0]["wrong"] == 0
assert len(of("bus")) == len(of("machine")) == len(of("load")) == 1
assert of("bus")[0]["daemon"] and of("machine")[0]["kernel"]
TEXT
nothing_left

# On one core nobody polls; elsewhere on the bus; as text.
expect 0 "$CTL" bench --seconds 1 --size 16 --cpus "$core,$core" --path /Test/pc/x/w1/g1
holds "one core" "$work/out"
holds "/Test/pc/x/w1/g1/ringbusctl/" "$work/out"
holds "number, order and content of each are right" "$work/out"
lacks busy "$work/out"
expect 4 "$CTL" ls /Test

# ---- it ends in order when it is told to -------------------------------------------------
for signal in TERM INT HUP; do
    background interrupted "$CTL" bench --seconds 60 --size 48
    bench=$last
    both=$(sides)
    kill -$signal "$bench"
    ended "$bench" 1
    holds interrupted "$work/interrupted.err"
    [ ! -s "$work/interrupted" ] || fail "figures of an interrupted run"
    # shellcheck disable=SC2086 # a list of words is meant
    nothing_left $both
done

# ---- a side dies, the whole dies ---------------------------------------------------------
for victim in 1 2; do
    background killed "$CTL" bench --seconds 60 --size 48
    bench=$last
    both=$(sides)
    kill -KILL "$(echo "$both" | sed -n ${victim}p)"
    ended "$bench" 1
    holds "was ended by signal 9" "$work/killed.err"
    # shellcheck disable=SC2086
    nothing_left $both
done
background orphans "$CTL" bench --seconds 60 --size 48
bench=$last
both=$(sides)
kill -KILL "$bench"
ended "$bench" 137
# shellcheck disable=SC2086
nothing_left $both

# ---- a quota refuses it ------------------------------------------------------------------
printf 'quota:\n  instances: 1\n' >"$work/one.yaml"
RINGBUS_SOCKET=$work/one.sock
export RINGBUS_SOCKET
"$RINGBUSD" --socket "$RINGBUS_SOCKET" --config "$work/one.yaml" 2>>"$work/daemon.log" &
pids="$! $pids"
until_true "the daemon does not answer" "$CTL" status
expect 6 "$CTL" bench --seconds 1
holds "quota.instances" "$work/err"
holds "$work/one.yaml" "$work/err"
holds "raise it" "$work/err"
nothing_left
expect 6 "$CTL" bench --seconds 1 --json
json "$work/err"
echo "bench measures, checks, and leaves nothing"
