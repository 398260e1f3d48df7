#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD [--seconds N] [--input DIR] [--json] [--hosts 1|2]: a small game back end on real
# input: one gate, two lobbies, three battles, each a process, and a daemon of its own. With two
# hosts the battles are on the other one, behind bridges.
set -eu
usage() {
    echo "usage: run.sh BUILD-DIRECTORY [--seconds N] [--input DIR] [--json] [--hosts 1|2]" >&2
    exit 2
}
[ $# -ge 1 ] || usage
BUILD=$1
shift
seconds=10
input=/usr/include
json=""
hosts=1
while [ $# -gt 0 ]; do
    case $1 in
    --seconds | --input | --hosts)
        [ $# -ge 2 ] || usage
        case $1 in
        --seconds) seconds=$2 ;;
        --input) input=$2 ;;
        *) hosts=$2 ;;
        esac
        shift 2
        ;;
    --json)
        json=--json
        shift
        ;;
    *) usage ;;
    esac
done
case $hosts in 1 | 2) ;; *) usage ;; esac
case $seconds in
'' | *[!0-9]*) usage ;;
esac
[ -d "$input" ] || {
    echo "demo: no directory $input" >&2
    exit 2
}

. "$(dirname "$0")/../bus.sh"
battles=start
if [ "$hosts" = 2 ]; then
    . "$top/examples/hosts.sh"
    hosts_start
    battles="on beta start"
    echo "demo: two hosts ($hosts_mode), gate and lobbies on alpha, battles on beta, TLS between them" >&2
else
    bus_start "$top/configs/demo.yaml"
fi
bin=$build/examples/demo
# The lobbies need room for the largest file; the gate sees for itself.
largest=$(find "$input" -type f -size -16385k -printf '%s\n' 2>/dev/null | sort -n | tail -1)
for n in 1 2 3; do
    $battles "battle.$n" "$bin/battle" --instance $n
done
for n in 1 2; do
    start "lobby.$n" "$bin/lobby" --instance $n --largest "${largest:-1}"
done

# In the background, so that a signal to this script is acted upon at once.
"$bin/gate" --lobbies 2 --battles 3 --seconds "$seconds" --input "$input" $json &
gate=$!
others=$pids
pids="$gate $pids"
code=0
wait "$gate" || code=$?
pids=$others
stop || { echo "demo: a lobby or battle did not end cleanly" >&2; code=1; }
exit "$code"
