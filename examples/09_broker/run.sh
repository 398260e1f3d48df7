#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: a mint, a bank that stands before it, and a player who knows the bank only.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
bus_start
start mint "$build/examples/09_broker/mint"
start broker "$build/examples/09_broker/broker"
"$build/examples/09_broker/player"
stop
