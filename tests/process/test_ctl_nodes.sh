#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_ctl_nodes.sh RINGBUSCTL RINGBUSD: the node tree from the command line: what there is and what
# there is not, who may change what, what stays over a restart.
set -eu
CTL=$1
RINGBUSD=$2
. "$(dirname "$0")/test_ctl_setup.sh"
group=/game/eu/pc/w1/core

cat >"$work/bus.yaml" <<END
quota: {nodes: 24, node_bytes: 4KiB}
END
daemon_up() {
    "$RINGBUSD" --config "$work/bus.yaml" --socket "$RINGBUS_SOCKET" 2>>"$work/daemon.log" &
    daemon=$!
    pids="$daemon $pids"
    until_true "the daemon does not answer" "$CTL" status
}
daemon_up

# ---- nothing, something ------------------------------------------------------------------
expect 0 "$CTL" get /
expect 4 "$CTL" get /game/eu/meta/season
holds "there is no node /game/eu/meta/season (RINGBUS_E_NO_SERVICE)" "$work/err"
expect 0 "$CTL" create /game/eu/meta/season winter
holds "/game/eu/meta/season: created, revision" "$work/out"
expect 6 "$CTL" create /game/eu/meta/season summer
holds "is there already" "$work/err"
expect 0 "$CTL" get /game/eu/meta/season
holds 'kind      node' "$work/out"
holds 'value     "winter"' "$work/out"
holds 'ephemeral no' "$work/out"
holds 'creator   ringbusctl, uid' "$work/out"
expect 0 "$CTL" get --json /game/eu/meta/season
json "$work/out"
holds '"data":"winter"' "$work/out"
revision=$(sed -n 's/.*"revision":\([0-9]*\).*/\1/p' "$work/out")
expect 0 "$CTL" get /game
holds '  eu' "$work/out"
expect 0 "$CTL" get /game/eu
holds '  meta' "$work/out"
expect 0 "$CTL" get /game/eu/meta
holds '  season' "$work/out"

# ---- set, and only if --------------------------------------------------------------------
expect 0 "$CTL" set --revision "$revision" /game/eu/meta/season spring
expect 6 "$CTL" set --revision "$revision" /game/eu/meta/season autumn
holds "revision $revision was expected" "$work/err"
printf 'a\000b' >"$work/value"
expect 0 "$CTL" set /game/eu/meta/season - <"$work/value"
expect 0 "$CTL" get /game/eu/meta/season
holds 'value     "a\x00b"' "$work/out"
head -c 1025 /dev/zero >"$work/value"
expect 2 "$CTL" set /game/eu/meta/season - <"$work/value"
holds "larger than 1024 bytes" "$work/err"
expect 2 "$CTL" set --revision 0 /game/eu/meta/season x
expect 4 "$CTL" set /game/eu/meta/none x

# ---- parents and children ----------------------------------------------------------------
expect 4 "$CTL" create /game/eu/meta/a/b
holds "there is no node /game/eu/meta/a: create it first" "$work/err"
expect 0 "$CTL" create /game/eu/meta/a
expect 0 "$CTL" create /game/eu/meta/a/b
expect 6 "$CTL" rm /game/eu/meta/a
holds "has children, 1: remove those first" "$work/err"
expect 0 "$CTL" rm /game/eu/meta/a/b
expect 0 "$CTL" rm /game/eu/meta/a
expect 4 "$CTL" rm /game/eu/meta/a
# More children than one answer holds, with names as long as they may be.
long=child-of-a-name-that-is-as-long-as-a-name-may-become-in-here
for i in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19; do
    expect 0 "$CTL" create "/game/eu/meta/$long-$i"
done
expect 0 "$CTL" get /game/eu/meta
[ "$(grep -c '^  child-' "$work/out")" -eq 19 ] || fail "not 19 children: $(cat "$work/out")"
expect 0 "$CTL" get --json /game/eu/meta
json "$work/out"
for i in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19; do
    expect 0 "$CTL" rm "/game/eu/meta/$long-$i"
done

# ---- paths that look alike (scenario 97) -------------------------------------------------
refused() {
    expect 2 "$CTL" create "$1"
    holds "at byte $2" "$work/err"
}
refused /game//meta/x 7
refused /game/eu/meta/ 14
refused /game/eu/meta/x/ 16
refused /game/./meta/x 7
refused /meta/x 2
refused /game/eu/meta/meta 15
refused /game/eu/meta/x/meta/y 17
refused /game/eu/meta/a/b/c/d/e 23
refused $group/battle/1/meta/x 30
refused "/game/eu/meta/a b" 16
expect 0 "$CTL" create /game/EU/meta/season "another one"
expect 0 "$CTL" get /game/eu/meta/season
holds 'value     "a\x00b"' "$work/out"
expect 0 "$CTL" rm /game/EU/meta/season
expect 2 "$CTL" recv $group/meta/1

# ---- clusters: NO_SERVICE, NO_INSTANCE, OK (D34) -----------------------------------------
expect 4 "$CTL" get $group/battle
holds "RINGBUS_E_NO_SERVICE" "$work/err"
expect 0 "$CTL" create $group/battle
expect 6 "$CTL" create $group/battle
expect 4 "$CTL" get $group/battle
holds "RINGBUS_E_NO_INSTANCE" "$work/err"
holds "instances 0" "$work/out"
background one "$CTL" recv $group/battle/1
one=$last
until_true "the instance is not there" "$CTL" get $group/battle
expect 0 "$CTL" get $group/battle
holds "instances 1" "$work/out"
holds "  1" "$work/out"
expect 0 "$CTL" get $group/battle/1
holds "kind      instance" "$work/out"
expect 4 "$CTL" get $group/battle/2
holds "RINGBUS_E_NO_INSTANCE" "$work/err"

# ---- an instance is its own (scenario 99) ------------------------------------------------
expect 6 "$CTL" create $group/battle/2
expect 6 "$CTL" set $group/battle/1 x
expect 6 "$CTL" rm $group/battle/1
holds "lives" "$work/err"
expect 6 "$CTL" rm $group/battle
expect 0 "$CTL" create $group/battle/meta/leader 1
finish "$one" 0
expect 4 "$CTL" rm $group/battle/1
expect 6 "$CTL" rm $group/battle
holds 'has nodes below "meta"' "$work/err"
expect 0 "$CTL" rm $group/battle/meta/leader
expect 0 "$CTL" rm $group/battle
expect 4 "$CTL" get $group/battle
holds "RINGBUS_E_NO_SERVICE" "$work/err"
expect 1 "$CTL" set /game x
expect 1 "$CTL" rm /game

# ---- watch -------------------------------------------------------------------------------
background watch "$CTL" watch --json --count 4 /game/eu/meta
watch=$last
until_true "watch does not begin" grep -q NODE_CREATED "$work/watch"
expect 0 "$CTL" create /game/eu/meta/seen "x"
expect 0 "$CTL" create /game/us/meta/unseen "x"
expect 0 "$CTL" set /game/eu/meta/seen "y"
expect 0 "$CTL" rm /game/eu/meta/seen
expect 0 "$CTL" rm /game/us/meta/unseen
wait "$watch" || fail "watch ended with $?"
json "$work/watch"
holds '"event":"NODE_CREATED","path":"/game/eu/meta/seen"' "$work/watch"
holds '"event":"NODE_CHANGED","path":"/game/eu/meta/seen"' "$work/watch"
holds '"data":"y"' "$work/watch"
holds '"event":"NODE_REMOVED","path":"/game/eu/meta/seen"' "$work/watch"
holds '"reason":"removed"' "$work/watch"
expect 0 "$CTL" watch --count 1 /game/eu/meta/season
holds 'NODE_CREATED /game/eu/meta/season revision' "$work/out"

# ---- quotas ------------------------------------------------------------------------------
head -c 1024 /dev/zero | tr '\0' x >"$work/value"
for i in 1 2 3; do
    expect 0 "$CTL" create "/game/eu/meta/big$i" - <"$work/value"
done
expect 6 "$CTL" create /game/eu/meta/big4 - <"$work/value"
holds "quota.node_bytes is used up: limit 4096" "$work/err"
expect 6 "$CTL" set /game/eu/meta/season - <"$work/value"
holds "quota.node_bytes is used up" "$work/err"
expect 0 "$CTL" get /game/eu/meta/season
holds 'value     "a\x00b"' "$work/out"
expect 0 "$CTL" set /game/eu/meta/big1 small
i=0
while "$CTL" create "/game/eu/meta/n$i" >/dev/null 2>"$work/err"; do i=$((i + 1)); done
[ $i -eq 20 ] || fail "$i nodes beside 4, the limit is 24"
holds "quota.nodes is used up: limit 24" "$work/err"
while [ $i -gt 0 ]; do
    i=$((i - 1))
    expect 0 "$CTL" rm "/game/eu/meta/n$i"
done

# ---- restarts ----------------------------------------------------------------------------
expect 0 "$CTL" get --json /game/eu/meta/season
cp "$work/out" "$work/before"
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
daemon_up
expect 0 "$CTL" get --json /game/eu/meta/season
cmp "$work/before" "$work/out" || fail "not as it was: $(cat "$work/before" "$work/out")"
expect 4 "$CTL" get /game/eu/meta/n0
expect 0 "$CTL" set --json /game/eu/meta/season later
last_revision=$(sed -n 's/.*"revision":\([0-9]*\).*/\1/p' "$work/before")
new_revision=$(sed -n 's/.*"revision":\([0-9]*\).*/\1/p' "$work/out")
[ "$new_revision" -gt "$last_revision" ] || fail "revision $new_revision after $last_revision"

# A torn file: what is whole is there, the rest is said to be left out, and it is set aside.
expect 0 "$CTL" create /game/eu/meta/torn "the last change"
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
size=$(wc -c <"$RINGBUS_SOCKET.nodes")
truncate -s $((size - 3)) "$RINGBUS_SOCKET.nodes"
daemon_up
holds "nodes_ignored" "$work/daemon.log"
expect 4 "$CTL" get /game/eu/meta/torn
expect 0 "$CTL" get /game/eu/meta/season
holds 'value     "later"' "$work/out"
[ -s "$RINGBUS_SOCKET.nodes.damaged" ] || fail "the damaged file was not set aside"
expect 0 "$CTL" create /game/eu/meta/torn again

# One that is no file of ours at all.
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
echo "something else" >"$RINGBUS_SOCKET.nodes"
daemon_up
expect 4 "$CTL" get /game/eu/meta/season
expect 0 "$CTL" create /game/eu/meta/season anew
expect 0 "$CTL" status
holds "nodes" "$work/out"
