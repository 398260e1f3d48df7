#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: a worker with an event loop of its own; ringbusctl gives it work.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
bus_start
start worker "$build/examples/05_event_loop/worker"
printf 'sweep\ncook\nwash\n' | "$build/daemon/ctl/ringbusctl" send --lines /Demo/cn/pc/w1/g1/Worker
sleep 0.1 # the timer's turn: it runs every 20 ms
stop
cat "$work/worker"
