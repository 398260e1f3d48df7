#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: a server and a client that asks it four times.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
bus_start
start server "$build/examples/02_request/server"
"$build/examples/02_request/client"
stop
