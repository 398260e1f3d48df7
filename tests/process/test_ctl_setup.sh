# SPDX-License-Identifier: Apache-2.0
# For the tests of ringbusctl: a daemon in a directory of its own, checks, clean end.
# Sourced with CTL and RINGBUSD set to the programs.
work=$(mktemp -d "${TMPDIR:-/tmp}/ringbus-ctl.XXXXXX")
RINGBUS_SOCKET=$work/bus.sock
export RINGBUS_SOCKET
pids=""

cleanup() {
    code=$?
    for pid in $pids; do
        kill -CONT "$pid" 2>/dev/null || true
        kill -TERM "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    [ $code -eq 0 ] || { echo "--- daemon:"; tail -20 "$work/daemon.log"; } >&2
    rm -rf "$work"
    exit $code
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# until_true WHAT COMMAND...: waits up to 5 s until the command succeeds
until_true() {
    what=$1
    shift
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 250 ] || fail "$what"
        sleep 0.02
    done
}
# expect CODE COMMAND...: runs it; output in $work/out and $work/err
expect() {
    wanted=$1
    shift
    got=0
    "$@" >"$work/out" 2>"$work/err" || got=$?
    [ $got -eq "$wanted" ] || {
        cat "$work/out" "$work/err" >&2
        fail "exit code $got instead of $wanted: $*"
    }
}
# holds TEXT FILE...: one of the files has the text
holds() {
    text=$1
    shift
    grep -qF -e "$text" "$@" || {
        cat "$@" >&2
        fail "no '$text' in $*"
    }
}
# lacks PATTERN FILE: no line of it matches
lacks() {
    if grep -E -e "$1" "$2" >&2; then
        fail "'$1' is in $2"
    fi
}
# json FILE: every line is an object
json() {
    python3 -c 'import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert rows and all(isinstance(row, dict) for row in rows)' "$1" || fail "not JSON: $(cat "$1")"
}
daemon_start() {
    "$RINGBUSD" --socket "$RINGBUS_SOCKET" 2>"$work/daemon.log" &
    pids="$! $pids"
    until_true "the daemon does not answer" "$CTL" status
}
# background NAME COMMAND...: output in $work/NAME, process in $last
background() {
    name=$1
    shift
    "$@" >"$work/$name" 2>"$work/$name.err" &
    last=$!
    pids="$last $pids"
}
# finish PID CODE: SIGTERM and the exit code that must follow
finish() {
    kill -TERM "$1" 2>/dev/null || true
    got=0
    wait "$1" || got=$?
    [ $got -eq "$2" ] || fail "process ended with $got instead of $2"
}
