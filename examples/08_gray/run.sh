#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: a new release of a shop and of the stock behind it, from its start to its end.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
ctl="$build/daemon/ctl/ringbusctl"
programs=$build/examples/08_gray
place=/Demo/cn/pc/w1/g1

step() { # step TEXT COMMAND [ARGUMENT...]: what is done, and what the players have of it
    echo "$1"
    shift
    "$@" >/dev/null
}
instances() { # instances COMMAND [OPTION...]: the same for both new instances
    command=$1
    shift
    "$ctl" "$command" $place/Shop/new "$@"
    "$ctl" "$command" $place/Stock/new "$@"
}
linked() { # linked N: waits until so many ends of links are there: every shop has one to every stock
    tries=0
    while [ "$("$ctl" ls $place | awk '$2 == "READY" { sum += $5 } END { print sum + 0 }')" -lt "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 500 ] || { echo "they are not linked" >&2 && exit 1; }
        sleep 0.01
    done
}

bus_start "$here/release.yaml"
start stock "$programs/service" Stock/old v1
start shop-1 "$programs/service" Shop/old-1 v1 Stock
start shop-2 "$programs/service" Shop/old-2 v1 Stock
linked 4
echo "before"
"$programs/players" 2

step "staged: started, and only tests reach it" instances stage
start stock-new "$programs/service" Stock/new v2
start shop-new "$programs/service" Shop/new v2 Stock
linked 12
"$programs/players" 3
echo "  a test by $("$ctl" call --tag test $place/Shop </dev/null)"

step "tagged \"pre\", no longer staged: only messages with that tag reach it" instances move --tags pre
instances stage --off >/dev/null
"$programs/players" 3
echo "  with the tag:"
"$programs/players" 3 pre

step "10 % of the players" "$ctl" apply "$here/canary-10.yaml"
"$programs/players" 3
version=$("$ctl" history --count 1 | sed 's/[^0-9]*\([0-9]*\).*/\1/')

step "all of them" "$ctl" apply "$here/canary-100.yaml"
"$programs/players" 3

step "rolled back" "$ctl" rollback "$version"
"$programs/players" 3

step "taken out at once" instances isolate
"$programs/players" 3
stop
