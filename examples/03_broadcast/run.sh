#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: three listeners and one who tells them.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
bus_start
for n in 1 2 3; do
    start "listener.$n" "$build/examples/03_broadcast/listener" $n
done
"$build/examples/03_broadcast/announcer" 3
stop
cat "$work/listener.1" "$work/listener.2" "$work/listener.3"
