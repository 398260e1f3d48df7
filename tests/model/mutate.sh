#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mutate.sh [SOURCE_DIR [CXX]]: weakens every labelled access of shm/ in turn, in a copy,
# and expects its model to fail. An R or A label is weakened to relaxed and must be
# caught by the model of the lane (or pool); a B label to release or acquire, by the bell's.
set -eu
src=$(cd "${1:-$(dirname "$0")/../..}" && pwd)
cxx=${2:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
survivors=0
mutants=0

# LINE LABELS of each labelled access: the first access after the comment.
sites() { # sites FILE
    awk '
      /pairs with/ {
          labels = ""; rest = $0
          while (match(rest, /[RAB][0-9]+: pairs with/)) {
              labels = labels " " substr(rest, RSTART, index(substr(rest, RSTART), ":") - 1)
              rest = substr(rest, RSTART + RLENGTH)
          }
      }
      labels != "" && /rbi_(load|store)_(acq|rel|seq)\(/ { print FNR labels; labels = "" }
    ' "$src/$1"
}

expect_failure() { # expect_failure NAME MODEL
    mutants=$((mutants + 1))
    "$cxx" -std=gnu++14 -O1 -w -I"$work" -I"$src/tests/model" "$src/tests/model/model_$2.cpp" \
        -o "$work/model"
    if timeout 300 "$work/model" >"$work/log" 2>&1 || ! grep -q FAILED "$work/log"; then
        echo "SURVIVED: $1 (model_$2)"
        survivors=$((survivors + 1))
    else
        echo "caught: $1 (model_$2)"
    fi
}

mutate() { # mutate NAME MODEL FILE SED_SCRIPT
    rm -rf "$work/shm"
    cp -r "$src/shm" "$work/shm"
    sed -i "$4" "$work/$3"
    if cmp -s "$src/$3" "$work/$3"; then
        echo "$1: nothing to change in $3" >&2
        exit 1
    fi
    expect_failure "$1" "$2"
}

for file in shm/lane_inline.h shm/lane.c shm/pool.c shm/bell.h; do
    sites "$file" >"$work/sites"
    while read -r line labels; do
        for label in $labels; do
            case $label in
            B*) mutate "$file:$line $label weakened" bell "$file" \
                "${line}s/rbi_load_seq/rbi_load_acq/;${line}s/rbi_store_seq/rbi_store_rel/" ;;
            *)
                model=lane
                [ "$file" = shm/pool.c ] && model=pool
                mutate "$file:$line $label relaxed" $model "$file" \
                    "${line}s/rbi_load_[a-z]*/rbi_load_rlx/;${line}s/rbi_store_[a-z]*/rbi_store_rlx/"
                ;;
            esac
        done
    done <"$work/sites"
done
# Not orders, but what the lane's argument rests on.
mutate "no zero behind a record" lane shm/lane_inline.h 's/bytes + RBI_LINE + room/bytes + room/'
mutate "lent lines not wiped" lane shm/lane_inline.h 's/rbi_lane_wipe_lent(tx, end);/;/'
mutate "ring once only" bell shm/bell.h 's/epoch == \*rung/*rung != 0/'
echo "$mutants mutants, $survivors survived"
[ "$mutants" -ge 21 ] && [ "$survivors" -eq 0 ]
