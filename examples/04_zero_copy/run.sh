#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: a camera whose frames two viewers read in the camera's own memory.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
bus_start
for n in 1 2; do
    start "viewer.$n" "$build/examples/04_zero_copy/viewer" $n
done
"$build/examples/04_zero_copy/camera" 2
stop
cat "$work/viewer.1" "$work/viewer.2"
