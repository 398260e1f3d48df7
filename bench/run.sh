#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/run.sh BUILD [options of bench_quick]: one run at a time on this machine.
set -eu
build=$1
shift
here=$(dirname "$0")
exec 9>"${TMPDIR:-/tmp}/ringbus-bench.lock"
flock 9
"$build/bench/bench_quick" --ringbusd "$build/daemon/ringbusd" "$@" 2>/dev/null
case " $* " in
*" --json "*) ;;
*) "$here/count_syscalls.sh" "$build/bench/bench_busy" "$build/daemon/ringbusd" || [ $? = 77 ] ;;
esac
