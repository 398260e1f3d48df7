#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh BUILD: the demo on a small input of all sizes, to its end, as lines and as JSON, on two
# hosts, and interrupted. Afterwards no process and no file of it may be left.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
input=$TMPDIR/input

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# Everything that the demo runs has its directory in the environment.
leftovers() {
    [ -z "$(find "$TMPDIR" -maxdepth 1 -name 'ringbus.*')" ] || fail "$1: files are left"
    for environ in /proc/[0-9]*/environ; do
        pid=${environ#/proc/}
        pid=${pid%/environ}
        [ "$pid" = $$ ] && continue
        program=$(readlink "/proc/$pid/exe" 2>/dev/null || true)
        case $program in
        "$build"/*) grep -qF "$TMPDIR/ringbus." "$environ" 2>/dev/null && fail "$1: $program is left" ;;
        esac
    done
    return 0
}

mkdir -p "$input/deep/er"
: >"$input/empty"
printf x >"$input/one"
for size in 63 64 65 1000 8191 8192 8193 16384 16385 70000 1048576 5000001; do
    head -c $size /dev/urandom >"$input/deep/$size"
done
for n in $(seq 1 100); do echo "text $n" >"$input/deep/er/$n.txt"; done
ln -s ../one "$input/deep/link" # not a regular file
truncate -s 17M "$input/large"  # over the limit: skipped, and said
files=$(find "$input" -type f ! -name large | wc -l)
bytes=$(find "$input" -type f ! -name large -printf '%s\n' | awk '{ sum += $1 } END { print sum }')

"$here/run.sh" "$build" --seconds 1 --input "$input" >"$TMPDIR/out" 2>"$TMPDIR/err" || fail "$(cat "$TMPDIR/err")"
tail -1 "$TMPDIR/out" | grep -qE "^demo: $files files, $bytes bytes, 0 mismatches, [0-9]+ msg/s, p50 [0-9.]+ us, p99 [0-9.]+ us\$" ||
    fail "the last line is: $(tail -1 "$TMPDIR/out")"
grep -q "skipped $input/large" "$TMPDIR/err" || fail "the large file was not named"
tail -1 "$TMPDIR/out"
leftovers "after the end"

"$here/run.sh" "$build" --seconds 1 --input "$input" --json >"$TMPDIR/out" 2>"$TMPDIR/err" || fail "$(cat "$TMPDIR/err")"
python3 - "$TMPDIR/out" "$files" <<'PYTHON' || fail "$(cat "$TMPDIR/out")"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
last = rows[-1]
names = [instance["name"] for instance in last["instances"]]
assert last["type"] == "result" and last["files"] == int(sys.argv[2]) and last["mismatches"] == 0, last
assert names == ["Battle/1", "Battle/2", "Battle/3", "Lobby/1", "Lobby/2"], names
assert all(i["handled"] > 0 and i["announcements"] > 0 for i in last["instances"]), last
for cluster in ("Battle/", "Lobby/"):
    assert sum(i["handled"] for i in last["instances"] if i["name"].startswith(cluster)) >= last["requests"], last
PYTHON
leftovers "after --json"

if command -v openssl >/dev/null; then
    "$here/run.sh" "$build" --seconds 1 --input "$input" --hosts 2 >"$TMPDIR/out" 2>"$TMPDIR/err" || fail "$(cat "$TMPDIR/err")"
    tail -1 "$TMPDIR/out" | grep -q "^demo: $files files, $bytes bytes, 0 mismatches, " ||
        fail "on two hosts the last line is: $(tail -1 "$TMPDIR/out")"
    grep -q "two hosts" "$TMPDIR/err" || fail "it does not say that there are two hosts"
    tail -1 "$TMPDIR/out"
    leftovers "after two hosts"
else
    echo "two hosts: left out, there is no openssl"
fi

# Ctrl-C; env gives back the signal that a shell takes from its background processes.
env --default-signal=INT "$here/run.sh" "$build" --seconds 60 --input "$input" >"$TMPDIR/out" 2>"$TMPDIR/err" &
demo=$!
tries=0
until grep -q messages "$TMPDIR/out"; do
    tries=$((tries + 1))
    [ $tries -lt 500 ] || fail "the demo does not begin: $(cat "$TMPDIR/err")"
    sleep 0.02
done
kill -INT $demo
code=0
wait $demo || code=$?
[ $code -eq 130 ] || fail "interrupted, it ended with $code"
leftovers "after Ctrl-C"

code=0
"$here/run.sh" "$build" --seconds 1 --input "$input/nowhere" 2>/dev/null || code=$?
[ $code -eq 2 ] || fail "a wrong directory gives $code"
echo "as expected"
