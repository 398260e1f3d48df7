# SPDX-License-Identifier: Apache-2.0
# For the run.sh of the examples: a daemon of its own in a directory of its own, and
# nothing left behind. Sourced with BUILD set to the build directory.
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here" && while [ ! -f CMakePresets.json ]; do cd ..; done && pwd)
build=$(cd "${BUILD:?}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/ringbus.XXXXXX")
RINGBUS_SOCKET=$work/bus.sock
export RINGBUS_SOCKET
pids=""
daemon=""

bus_cleanup() {
    code=$?
    trap '' INT TERM
    for pid in $pids $daemon; do
        kill -TERM "$pid" 2>/dev/null || true
    done
    for pid in $pids $daemon; do
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
    exit "$code"
}
trap bus_cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

bus_start() { # bus_start [CONFIG]
    "$build/daemon/ringbusd" --config "${1:-$top/configs/minimal.yaml}" --socket "$RINGBUS_SOCKET" 2>"$work/daemon.log" &
    daemon=$!
    tries=0
    # Not for the socket: that is there a moment before anybody listens.
    until grep -qs ' event=ready ' "$work/daemon.log"; do
        tries=$((tries + 1))
        if [ $tries -gt 500 ] || ! kill -0 "$daemon" 2>/dev/null; then
            echo "the daemon did not start:" >&2
            cat "$work/daemon.log" >&2
            exit 1
        fi
        sleep 0.01
    done
}

# start NAME PROGRAM [ARGUMENT...]: in the background, its output in $work/NAME
start() {
    name=$1
    shift
    # shellcheck disable=SC2086 # a command and its arguments, or nothing (hosts.sh)
    ${hosts_within-} "$@" >"$work/$name" &
    pids="$pids $!"
}

# stop: ends everything that start() began, in order, and fails when one of them failed
stop() {
    result=0
    for pid in $pids; do
        kill -TERM "$pid" 2>/dev/null || true
        wait "$pid" || result=$?
    done
    pids=""
    return $result
}
