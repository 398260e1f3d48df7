#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: one receiver, one sender.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
bus_start
start receiver "$build/examples/01_hello/receiver"
"$build/examples/01_hello/sender"
stop
cat "$work/receiver"
