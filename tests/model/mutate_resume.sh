#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Breaks each rule of tests/model/resume.pml that is marked M, and expects the search to find it.
# Usage: mutate_resume.sh [SOURCE_DIR [C_COMPILER]]
set -eu
command -v spin >/dev/null || { echo "spin is not installed: skipped"; exit 77; }
src=$(cd "${1:-$(dirname "$0")/../..}" && pwd)
cc=${2:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
model=$src/tests/model/resume.pml
survivors=0
mutants=0

mutate() { # mutate NAME SED_SCRIPT
    mutants=$((mutants + 1))
    sed "$2" "$model" >"$work/resume.pml"
    if cmp -s "$model" "$work/resume.pml"; then
        echo "$1: nothing to change" >&2
        exit 1
    fi
    if "$src/tests/model/run_spin.sh" "$work/resume.pml" 2 "$cc" >"$work/log" 2>&1 ||
        ! grep -q 'assertion violated' "$work/log"; then
        echo "SURVIVED: $1"
        survivors=$((survivors + 1))
    else
        echo "caught: $1"
    fi
}

mutate "M1 nobody says that OPENED came too late" '/M1/s/send_to_acceptor.*0, 0)/skip/'
mutate "M2 the opener goes on where it was" '/M2/s/pos = x/skip/'
mutate "M3 only what is acknowledged may have been seen" '/M3/s/furthest/acked/'
mutate "M4 an acknowledgement is said once" '/M4/s/a_told = NEVER/skip/'
mutate "M5 an old OPEN is taken" '/M5/s/ && n > a_attempt//'
mutate "M6 any stream of the name goes on" '/M6/s/x > a_attempt || y > a_expect/false/'
echo "$mutants mutants, $survivors survived"
[ "$mutants" -eq 6 ] && [ "$survivors" -eq 0 ]
