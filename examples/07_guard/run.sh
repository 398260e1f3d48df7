#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: a shop of two instances, and a customer that asks too much of it.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
bus_start "$here/guard.yaml"
start full "$build/examples/07_guard/shop" full
start open "$build/examples/07_guard/shop" open
"$build/examples/07_guard/customer"
stop
cat "$work/open"
