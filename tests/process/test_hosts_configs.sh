#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_hosts_configs.sh ROOT RINGBUSCTL RINGBUSD BRIDGE: the configurations of several hosts are started as
# they are, but for names, addresses and places of certificates: a daemon and a bridge for each host,
# here with a socket and a port of its own. Everybody reaches everybody, and when the connection of
# two is refused, over the third (scenario group I; features D64 to D67, D74).
set -eu
root=$1
CTL=$2
RINGBUSD=$3
RINGBUS_BRIDGE=$4
export RINGBUS_BRIDGE
. "$(dirname "$0")/test_ctl_setup.sh"

# until_true WHAT COMMAND...: as in the setup, for machines that are slow: connections, certificates
until_true() {
    what=$1
    shift
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 1000 ] || fail "$what"
        sleep 0.03
    done
}

ports=$(python3 -c 'import socket
socks = [socket.socket() for _ in range(3)]
for s in socks: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in socks))')
port() { # HOST
    case $1 in
    alpha) echo "$ports" | cut -d" " -f1 ;;
    beta) echo "$ports" | cut -d" " -f2 ;;
    *) echo "$ports" | cut -d" " -f3 ;;
    esac
}

# Certificates of all hosts, where they can be made; else plain, which is for loopback.
secure=
if command -v openssl >/dev/null; then
    secure=yes
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/ca.key" -out "$work/ca.pem" \
        -subj "/CN=ringbus test" -days 2 2>/dev/null
    for host in alpha beta gamma; do
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$host.key" -out "$work/$host.csr" \
            -subj "/CN=$host" 2>/dev/null
        printf 'subjectAltName=DNS:%s\n' "$host" >"$work/$host.ext"
        openssl x509 -req -in "$work/$host.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial \
            -extfile "$work/$host.ext" -out "$work/$host.pem" -days 2 2>/dev/null
    done
fi

# config_of FILE HOST: that of a host, out of alpha's: it exchanges places with alpha
config_of() {
    sed -e "s/\balpha\b/@own@/g; s/\b$2\b/alpha/g; s/@own@/$2/g" \
        -e "s,0\.0\.0\.0:7740,127.0.0.1:$(port "$2"),; s,/etc/ringbus/,$work/,; s/ping_interval: 1s/ping_interval: 200ms/" \
        -e "s/beta.example:7740/127.0.0.1:$(port beta)/; s/gamma.example:7740/127.0.0.1:$(port gamma)/" \
        -e "s/alpha.example:7740/127.0.0.1:$(port alpha)/" "$1" >"$work/$2.yaml"
    [ -n "$secure" ] || sed -i -e '/^  certificate:/d; /^  key:/d; /^  ca:/d' -e 's/^  host: .*/&\n  insecure: true/' "$work/$2.yaml"
}
start() { # HOST
    "$RINGBUSD" --config "$work/$1.yaml" --socket "$work/$1.sock" 2>>"$work/$1.log" &
    eval "daemon_$1=$!"
    pids="$! $pids"
}
on() { # HOST COMMAND...
    host=$1
    shift
    "$CTL" "$@" --socket "$work/$host.sock"
}
stop_all() {
    for pid in $pids; do
        kill -TERM "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    pids=""
}
reaches() { # HOST HOST WAY: the way is this one
    on "$1" route "$1" "$2" | grep -q "^$3  "
}
lists() { # HOST PATH PLACE
    on "$1" ls "$2" | grep -q "$3"
}
answers() { # HOST PATH
    [ "$(echo ping | on "$1" call --timeout 2s "$2")" = ping ]
}

# ---- two hosts -------------------------------------------------------------------------------
for host in alpha beta; do
    config_of "$root/configs/two-hosts.yaml" $host
    start $host
done
until_true "alpha has no way to beta" reaches alpha beta "alpha -> beta"
until_true "beta has no way to alpha" reaches beta alpha "beta -> alpha"
battle=/Game/eu/pc/w1/core/Battle
"$CTL" recv --echo --socket "$work/beta.sock" $battle/1 >"$work/battle" 2>&1 &
pids="$! $pids"
until_true "alpha does not see what beta exports" lists alpha $battle "@beta"
# The rules of beta let the lobby of another host call, and nobody else there.
got=0
echo ping | on alpha call --timeout 2s $battle >"$work/out" 2>&1 || got=$?
[ $got -eq 6 ] || fail "a stranger of another host is not denied: $got, $(cat "$work/out")"
answers beta $battle || fail "no answer on the same host"
on alpha hosts | grep -q "^beta  *up" || fail "beta is not up"
[ -z "$secure" ] || on alpha bridge status | grep -q "^beta .*tls" || fail "it is not encrypted"
stop_all
grep -h "level=error" "$work/alpha.log" "$work/beta.log" && fail "errors in the logs"

# ---- three, each connected to both others ------------------------------------------------------
for host in alpha beta gamma; do
    rm -f "$work/$host.log"
    config_of "$root/configs/three-hosts-mesh.yaml" $host
    start $host
done
for from in alpha beta gamma; do
    for to in alpha beta gamma; do
        [ $from = $to ] || until_true "$from has no way to $to" on $from route $from $to
    done
done
"$CTL" recv --echo --socket "$work/gamma.sock" $battle/3 >"$work/battle" 2>&1 &
pids="$! $pids"
until_true "alpha does not see what gamma exports" lists alpha $battle "@gamma"
answers alpha $battle || fail "no answer from gamma"
# Alpha and gamma do not talk to each other any more: beta is between them.
for host in alpha gamma; do
    sed -i "/host: $([ $host = alpha ] && echo gamma || echo alpha),/d" "$work/$host.yaml"
    eval "kill -HUP \$daemon_$host"
done
until_true "alpha does not go through beta" reaches alpha gamma "alpha -> beta -> gamma"
until_true "gamma does not go through beta" reaches gamma alpha "gamma -> beta -> alpha"
until_true "nobody answers over the third host" answers alpha $battle
stop_all
grep -h "level=error" "$work/alpha.log" "$work/beta.log" "$work/gamma.log" && fail "errors in the logs"
echo "configurations of several hosts start, and their hosts reach each other"
