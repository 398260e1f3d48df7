#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# two_hosts.sh BUILD FOLDER: two hosts on loopback, joined by bridges over TLS, until it is told to
# end. FOLDER/alpha.sock and FOLDER/beta.sock are their buses; FOLDER/ready is there when they are.
set -eu
BUILD=$1
folder=$(cd "$2" && pwd)
. "$(dirname "$0")/../examples/bus.sh"
. "$top/examples/hosts.sh"
hosts_may_split() { false; } # what is measured is the bridge, not a network
hosts_export="/Bench/**"

hosts_start
for host in alpha beta; do ln -s "$work/$host.sock" "$folder/$host.sock"; done
: >"$folder/ready"
while :; do
    sleep 1000 &
    pids=$!
    wait "$pids" || true
done
