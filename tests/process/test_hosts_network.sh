#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_hosts_network.sh BUILD: two hosts in network namespaces of their own, joined by TLS, and a
# network that swallows everything both ways (scenario 111): idle, under load, and with a bridge
# that is stopped while the kernel goes on answering for it. Each is found by PING within its bound,
# senders are told UNREACHABLE, and all goes on by itself when the network is back.
set -eu
BUILD=$1
skip() {
    echo "skipped: $*"
    exit 77
}
for tool in ip nft openssl; do command -v $tool >/dev/null || skip "there is no $tool"; done
[ "$(id -u)" = 0 ] || skip "network namespaces need root here"
. "$(dirname "$0")/../../examples/bus.sh"
. "$top/examples/hosts.sh"
hosts_more="  ping_interval: 200ms
  ping_misses: 3
  unreachable_after: 1s"
hosts_start
[ "$hosts_mode" = namespaces ] || skip "network namespaces are not permitted"
CTL=$build/daemon/ctl/ringbusctl
path=/Demo/cn/pc/w1/g1/Log/1

fail() {
    echo "FAILED: $*" >&2
    tail -n 40 "$work/alpha.log" "$work/beta.log" >&2
    exit 1
}
until_true() { # until_true WHAT COMMAND...: within 20 s
    what=$1
    shift
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || fail "$what"
        sleep 0.05
    done
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }
lines() { grep -c "$2" "$work/$1.log" || true; }

# The network swallows everything, or no more.
swallow() {
    ip netns exec "$hosts_space.beta" nft -f - <<'NFT'
table inet rb {
    chain in { type filter hook input priority 0; iifname "eth0" drop; }
    chain out { type filter hook output priority 0; oifname "eth0" drop; }
}
NFT
}
heal() { ip netns exec "$hosts_space.beta" nft delete table inet rb; }
more_than() { [ "$(lines "$1" "$2")" -gt "$3" ]; }

# expect_found WHAT: the cut is found by PING: 3 misses of 200 ms, an interval, and what a busy
# machine takes. Kernels would take minutes.
expect_found() {
    begin=$(now_ms)
    until_true "$1 is not found by alpha" more_than alpha event=host_cut "$cuts"
    took=$(($(now_ms) - begin))
    [ $took -lt 8000 ] || fail "$1 was found after $took ms"
    echo "$1: found after $took ms"
    until_true "$1: alpha still takes beta for reachable" more_than alpha 'event=host_unreachable host=beta' "$gone"
}
note() {
    cuts=$(lines alpha event=host_cut)
    gone=$(lines alpha 'event=host_unreachable host=beta')
    back=$(lines alpha 'event=host_reachable host=beta')
}
expect_back() { until_true "$1: beta is not reachable again" more_than alpha 'event=host_reachable host=beta' "$back"; }

on beta start copy "$CTL" recv --lines --echo $path
until_true "alpha does not see the instance of beta" "$CTL" show $path
echo hello | "$CTL" call --timeout 10s $path >"$work/answer" || fail "no answer over the network"
grep -q hello "$work/answer" || fail "another answer: $(cat "$work/answer")"

# (a) Idle.
note
swallow
expect_found "a silent network, idle"
code=0
echo again | "$CTL" call --timeout 1s $path >"$work/answer" 2>"$work/error" || code=$?
[ $code -ne 0 ] || fail "a call to a host that cannot be reached was answered"
heal
expect_back idle
until_true "no call after the network is back" sh -c "echo x | '$CTL' call --timeout 5s $path"

# (b) Under load.
seq 1 1000000 | while read -r n; do
    echo "line $n"
    [ $((n % 10)) -ne 0 ] || sleep 0.01
done | "$CTL" send --lines $path >/dev/null 2>&1 &
load=$!
pids="$pids $load"
note
until_true "nothing is sent" grep -q "line 300" "$work/copy"
swallow
expect_found "a silent network, under load"
heal
expect_back "under load"
kill $load 2>/dev/null || true

# (c) The far bridge is stopped: its kernel answers for it.
bridge=$(pgrep -P "$(echo "$hosts_pids" | awk '{print $2}')" -f ringbus-bridge) || fail "no bridge of beta"
note
kill -STOP "$bridge"
expect_found "a bridge that is stopped"
kill -CONT "$bridge"
expect_back "stopped bridge"
until_true "no call after the bridge goes on" sh -c "echo x | '$CTL' call --timeout 5s $path"
echo "as expected"
