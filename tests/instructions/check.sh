#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh PROGRAM RINGBUSD CONFIG BUILD WORK [--write]: counts the instructions of each phase of
# PROGRAM (none: it was not built) under callgrind and compares them with expected.txt, or writes
# that file. BUILD says with what the library was built; the dumps stay in the folder WORK.
set -eu
program=$1
ringbusd=$2
config=$3
build=$4
work=$5
write=${6:-}
expected=$(cd "$(dirname "$0")" && pwd)/expected.txt
slack=3 # percent, both ways
descriptors=7000

fail() {
    echo "instructions: $*" >&2
    exit 1
}
skip() {
    [ -z "$write" ] || fail "$*"
    echo "instructions: SKIPPED: $*"
    exit 77
}
committed() { sed -n "s/^$1: //p" "$expected"; } # committed KEY

{ [ "$program" != none ] && command -v valgrind >/dev/null; } || skip "valgrind is not installed (Debian: valgrind)"
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || libc=unknown
if [ -z "$write" ]; then
    [ "$(committed build)" = "$build" ] || skip "this is $build, the figures are of $(committed build)"
    [ "$(committed libc)" = "$libc" ] || skip "this is $libc, the figures are of $(committed libc)"
fi
# shellcheck disable=SC3045 # dash, bash and busybox know it
ulimit -n $descriptors 2>/dev/null || skip "600 endpoints need $descriptors descriptors, which ulimit -n refuses"

mkdir -p "$work"
rm -f "$work"/out*
folder=$(mktemp -d "${TMPDIR:-/tmp}/ringbus-instructions.XXXXXX")
daemon=
stop() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 1' INT TERM
"$ringbusd" --socket "$folder/bus.sock" --config "$config" >"$work/daemon.log" 2>&1 &
daemon=$!
tries=0
while [ ! -S "$folder/bus.sock" ]; do
    tries=$((tries + 1))
    { kill -0 "$daemon" 2>/dev/null && [ $tries -lt 1000 ]; } || fail "ringbusd does not start: $(cat "$work/daemon.log")"
    sleep 0.01
done

# The C library picks its memcpy() by processor: here the same one everywhere. Skipping what lies
# between a call and a function of another library (--skip-plt) miscounts it, by chance.
GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX_Fast_Unaligned_Load,-ERMS,Fast_Unaligned_Copy \
    valgrind --tool=callgrind --skip-plt=no --instr-atstart=no --collect-atstart=no --callgrind-out-file="$work/out" \
    "$program" "$folder/bus.sock" >"$work/valgrind.log" 2>&1 || fail "the counted program failed: $(cat "$work/valgrind.log")"

# One line a phase: NAME INSTRUCTIONS DUMP. A dump has "Trigger: ... NAME ROUNDS OPERATIONS" and
# its total; the first phase does nothing, and what a round of it takes is counting itself.
n=0
while n=$((n + 1)) && [ -f "$work/out.$n" ]; do
    awk -v dump="$work/out.$n" '
        /^desc: Trigger: Client Request: / { name = $5; rounds = $6; operations = $7 }
        /^totals: / { total = $2 }
        END { print name, rounds, operations, total, dump }' "$work/out.$n"
done | awk '
    $1 == "nothing" { counting = $4 / $2; next }
    NF == 5 { printf "%s %.2f %s\n", $1, ($4 - $2 * counting) / ($2 * $3), $5 }' >"$work/figures"
[ -s "$work/figures" ] || fail "callgrind left no dumps in $work"

if [ "$write" = --write ]; then
    {
        echo "# Instructions per operation; written by: cmake --build build/release --target instructions_update"
        echo "build: $build"
        echo "libc: $libc"
        awk '{ print $1, $2 }' "$work/figures"
    } >"$expected"
    cat "$expected"
    exit 0
fi
awk -v slack=$slack -v file="$expected" -v build="${work%/tests/*}" '
    FNR == NR { if (NF == 2 && $1 !~ /[:#]/) { was[$1] = $2; left++ } next }
    FNR == 1 { printf "%-16s %10s %10s %8s\n", "instructions", "counted", "committed", "change" }
    !($1 in was) { printf "%-16s %10.2f %10s\n", $1, $2, "-"; wrong = wrong "  " $1 ": not in " file "\n"; next }
    {
        change = 100 * ($2 - was[$1]) / was[$1]
        far = change > slack || change < -slack
        printf "%-16s %10.2f %10.2f %+7.1f%%%s\n", $1, $2, was[$1], change, far ? "  <-" : ""
        if (far)
            wrong = wrong sprintf("  %s: %.2f instructions, committed %.2f, %+.1f%%, limit %d%%\n" \
                                  "      where they go: callgrind_annotate %s\n", $1, $2, was[$1], change, slack, $3)
        delete was[$1]; left--
    }
    END {
        for (name in was) wrong = wrong "  " name ": in " file " but not counted\n"
        if (wrong == "") exit 0
        printf "\n%s  More, and not meant: take it out again. Fewer, or meant:\n" \
               "  cmake --build %s --target instructions_update, and commit %s\n", wrong, build, file
        exit 1
    }' "$expected" "$work/figures"
