#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_ctl_governance.sh RINGBUSCTL RINGBUSD: apply, diff, history, rollback and single changes.
set -eu
CTL=$1
RINGBUSD=$2
. "$(dirname "$0")/test_ctl_setup.sh"
group=/Demo/cn/pc/w1/g1

# ---- wrong command lines -------------------------------------------------------------------
expect 2 "$CTL" apply
expect 2 "$CTL" rollback x
expect 2 "$CTL" rollback 0
expect 2 "$CTL" isolate $group/A
expect 2 "$CTL" weight $group/A/1
expect 2 "$CTL" move $group/A/1
expect 2 "$CTL" move $group/A/1 --off --set a.b.c
expect 2 "$CTL" mock $group/A 7 maybe
expect 2 "$CTL" limit $group/A all
expect 2 "$CTL" apply --expect x -
printf 'clusters:\n  - {match: "%s/**", retry: {tries: 9}, limits: [{id: all, rate: 10}]}\n' $group >"$work/one.yaml"
printf 'clusters:\n  - {match: "%s/**", retry: {trie: 9}}\n' $group >"$work/bad.yaml"
expect 3 "$CTL" apply "$work/one.yaml"
expect 4 "$CTL" apply "$work/none.yaml"
# What is wrong is found before a daemon is asked.
expect 1 "$CTL" apply "$work/bad.yaml"
holds "$work/bad.yaml:2:45: clusters[0].retry: unknown key \"trie\"; did you mean tries?" "$work/out"

# ---- whole texts ---------------------------------------------------------------------------
daemon_start
background receiver "$CTL" recv $group/A/1
receiver=$last
until_true "recv is not there" "$CTL" show $group/A/1
expect 0 "$CTL" history
[ ! -s "$work/out" ] || fail "there are versions of nothing"
expect 0 "$CTL" diff "$work/one.yaml"
holds "+ clusters[$group/**].limits[all].rate: 10" "$work/out"
expect 0 "$CTL" apply --dry-run "$work/one.yaml"
holds "would change 1 cluster, 0 instances" "$work/out"
expect 0 "$CTL" apply --expect 0 --why "more tries" "$work/one.yaml"
holds "version 1 holds: changed 1 cluster, 0 instances" "$work/out"
expect 0 "$CTL" diff "$work/one.yaml"
[ ! -s "$work/out" ] || fail "what was applied differs from itself"
expect 6 "$CTL" apply --expect 0 "$work/one.yaml"
holds "version 0 was expected, 1 holds" "$work/err"
sed 's/tries: 9/tries: 3/' "$work/one.yaml" >"$work/two.yaml"
expect 0 "$CTL" diff --json "$work/two.yaml"
json "$work/out"
holds '"old":"9","new":"3"' "$work/out"
expect 0 "$CTL" apply --json - <"$work/two.yaml"
json "$work/out"
holds '"version":2' "$work/out"

# ---- single changes ------------------------------------------------------------------------
# shown TEXT: the line of the instance has it
shown() {
    "$CTL" show --json $group/A/1 >"$work/shown"
    holds "$1" "$work/shown"
}
expect 0 "$CTL" weight $group/A/1 7
holds "changed 0 clusters, 1 instance" "$work/out"
shown '"weight":7'
expect 1 "$CTL" weight $group/A/1 7000
holds "out of range" "$work/err"
expect 0 "$CTL" weight $group/A/1 own
shown '"weight":100'
expect 0 "$CTL" move $group/A/1 --set demo.a.1 --tags pre,x
shown '"set":"demo.a.1"'
shown '"tags":"pre,x"'
expect 0 "$CTL" move $group/A/1 --off
expect 0 "$CTL" isolate $group/A/1
expect 0 "$CTL" isolate $group/A/1 --off
expect 0 "$CTL" stage $group/B/2
holds "changed 0 clusters, 0 instances" "$work/out" # it is not there yet
expect 0 "$CTL" stage $group/B/2 --off
expect 0 "$CTL" limit "$group/**" all 500/20
holds "changed 1 cluster" "$work/out"
expect 0 "$CTL" limit "$group/**" all off
expect 1 "$CTL" limit "$group/**" all 5x
expect 4 "$CTL" mock $group/A 7 on

# ---- for people ----------------------------------------------------------------------------
expect 0 "$CTL" describe $group/A
holds "owner   -" "$work/out"
printf 'clusters: [{match: "%s/*", describe: {owner: demo team, qps: 500, p99: 2ms, schema: v7}}]\n' $group >"$work/people.yaml"
expect 0 "$CTL" apply "$work/people.yaml"
holds "changed 1 cluster" "$work/out" # what was applied before is gone
expect 0 "$CTL" describe $group/A
holds "owner   demo team" "$work/out"
holds "p99     2000 us" "$work/out"
holds "policy  default" "$work/out"
expect 0 "$CTL" describe --json $group/Nobody
json "$work/out"
holds '"qps":500' "$work/out"
expect 2 "$CTL" describe $group
expect 0 "$CTL" rollback 12

# ---- history -------------------------------------------------------------------------------
expect 0 "$CTL" history --count 2
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "not 2 lines: $(cat "$work/out")"
head -1 "$work/out" | grep -q '^\*14 ' || fail "the newest does not hold: $(cat "$work/out")"
holds "rollback 12" "$work/out"
expect 0 "$CTL" history
holds "limit $group/** all off" "$work/out"
holds "apply $work/one.yaml: more tries" "$work/out"
holds " 20" "$work/out" # a year
holds "uid $(id -u)" "$work/out"
expect 0 "$CTL" history --json
json "$work/out"
expect 0 "$CTL" rollback 1
holds "version 15 holds: changed 1 cluster" "$work/out"
expect 0 "$CTL" diff "$work/one.yaml"
[ ! -s "$work/out" ] || fail "version 1 does not hold again"
expect 4 "$CTL" rollback 99

finish "$receiver" 0
echo "applied, compared, changed and taken back"
