#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/run.sh BUILD [--quick] [options]: one run at a time on this machine.
set -eu
build=$1
shift
exec 9>"${TMPDIR:-/tmp}/ringbus-bench.lock"
flock 9
exec "$build/bench/bench_quick" --ringbusd "$build/daemon/ringbusd" "$@"
