#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: keys that stay, a slow instance, weights, and slots that change hands.
set -eu
BUILD=${1:?usage: run.sh BUILD-DIRECTORY}
. "$(dirname "$0")/../bus.sh"
programs=$build/examples/06_balance
group=/Demo/cn/pc/w1/g1
bus_start "$here/balance.yaml"

worker() { # worker CLUSTER NAME [MS]
    start "$1.$2" "$programs/worker" "$group/$1/$2" ${3:+"$3"}
}

# slots NAME...: what each says that it owns, once all slots have an owner
slots() {
    tries=0
    while [ $tries -lt 100 ]; do
        tries=$((tries + 1))
        sum=0
        for pid in $store_pids; do
            kill -USR1 "$pid"
        done
        sleep 0.05
        for name in "$@"; do
            said=$(tail -n 1 "$work/Store.$name" | sed 's/[^0-9]*[0-9]* owns \([0-9]*\) .*/\1/')
            sum=$((sum + ${said:-0}))
        done
        if [ $sum -eq 65536 ]; then
            for name in "$@"; do
                tail -n 1 "$work/Store.$name"
            done
            return 0
        fi
    done
    echo "the slots do not come to 65536" >&2
    return 1
}

moved() { # moved BEFORE AFTER
    diff "$1" "$2" | grep -c '^>' || true
}

echo "# by key: every caller sends a key to the same instance"
store_pids=""
for name in s1 s2 s3; do
    worker Store $name
    last=${pids##* }
    store_pids="$store_pids $last"
done
"$programs/caller" $group/Store 3 keys "$work/before"
cut -d ' ' -f 2 "$work/before" | sort | uniq -c | awk '{print $2, $1}'
slots s1 s2 s3

echo "# s3 is stopped and started again: its keys waited for it"
kill -KILL "$last"
wait "$last" 2>/dev/null || true
pids=${pids% *}
store_pids=${store_pids% *}
worker Store s3
store_pids="$store_pids ${pids##* }"
"$programs/caller" $group/Store 3 keys "$work/again"
echo "moved: $(moved "$work/before" "$work/again")"

echo "# s4 comes: what it gains the others lose, and nothing else moves"
worker Store s4
store_pids="$store_pids ${pids##* }"
"$programs/caller" $group/Store 4 keys "$work/after"
slots s1 s2 s3 s4
echo "moved: $(moved "$work/again" "$work/after"), to s4: $(grep -c s4 "$work/after")"

echo "# one of three is slow"
for cluster in Turn Least; do
    worker $cluster w1
    worker $cluster w2
    worker $cluster w3 4
    "$programs/caller" $group/$cluster 3 any >"$work/shares.$cluster"
    slow=$(awk '$1 == "w3" {print $2}' "$work/shares.$cluster")
    if [ "${slow:-0}" -gt 120 ]; then
        echo "$cluster: the slow one got a third"
    elif [ "${slow:-0}" -lt 80 ]; then
        echo "$cluster: the slow one got less than a fifth"
    else
        echo "$cluster: the slow one got $slow of 400"
    fi
done

echo "# weights 300 and 100"
worker Weighted w1
worker Weighted w2
"$programs/caller" $group/Weighted 2 any
stop
