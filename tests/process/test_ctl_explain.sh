#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_ctl_explain.sh RINGBUSCTL RINGBUSD: what explain tells of routes on a real bus, as text and as
# JSON, and how it ends.
set -eu
CTL=$1
RINGBUSD=$2
. "$(dirname "$0")/test_ctl_setup.sh"
group=/Demo/cn/pc/w1/g1

cat >"$work/bus.yaml" <<END
clusters:
  - match: $group/Hall
    set: {mode: strict}
    tags: {canaries: [{id: early, tag: v2, share: 100%}]}
    rules:
      - {id: reads, methods: 1..9, mode: prefer, instance: 'read*'}
      - {id: seven, labels: [{mask: 0, value: 0}, {mask: 0xf, value: 7}], mode: strict, instance: 'none*'}
      - {id: trial, methods: 30, mode: strict, instance: 'read*', dry_run: true}
      - {id: ours, methods: 40, caller: {program: ringbusctl}, instance: 'read*'}
      - {id: theirs, methods: 40, caller: {program: /usr/bin/nobody}, instance: 'none*'}
  - {match: $group/Keyed, balance: {rehash_delay: 300ms}, limits: [{id: slow, rate: 20, burst: 1}]}
rights:
  rules:
    - {id: no-entry, action: deny, verbs: [connect], from: $group/Gate/2, to: $group/Hall/read*}
    - {id: no-orders, action: deny, verbs: [send], methods: 77, from: $group/Gate/2, to: $group/Hall/write*}
instances:
  $group/Hall/read1: {set: app.s.1}
  $group/Hall/write1: {set: app.s.1}
  $group/Hall/new1: {set: app.s.1, tags: v2}
  $group/Hall/far1: {set: app.n.1}
  $group/Hall/idle: {set: app.s.1, isolated: true}
  $group/Gate/1: {set: app.s.1}
END
"$RINGBUSD" --config "$work/bus.yaml" --socket "$RINGBUS_SOCKET" 2>"$work/daemon.log" &
pids="$! $pids"
until_true "the daemon does not answer" "$CTL" status
for name in Hall/read1 Hall/write1 Hall/new1 Hall/far1 Hall/idle Gate/1 Gate/2; do
    background "$(echo $name | tr / _)" "$CTL" recv $group/$name
done
all_there() { [ "$("$CTL" ls --json $group | grep -c '"state":"READY"')" -eq 7 ]; }
until_true "the instances are not there" all_there

# ---- text --------------------------------------------------------------------------------
expect 0 "$CTL" explain $group/Gate/1 $group/Hall
holds "$group/Hall: 5 instances, epoch" "$work/out"
holds "state    strict 5 -> 4" "$work/out"
holds "  - idle: is isolated by the operator" "$work/out"
holds "  - far1: is not of the caller's set" "$work/out"
holds "  - new1: is tagged and the message is not" "$work/out"
holds "in       $group/Hall/read1: share" "$work/out"
holds "in       $group/Hall/write1: share" "$work/out"

expect 0 "$CTL" explain --method 7 $group/Gate/1 $group/Hall
holds "  - write1: is no target of the rule (reads)" "$work/out"
expect 0 "$CTL" explain --method 30 $group/Gate/1 $group/Hall
holds "  ? write1: dry run: is no target of the rule (trial)" "$work/out"
# Rules about some callers: the daemon knows which program that one is.
expect 0 "$CTL" explain --method 40 $group/Gate/1 $group/Hall
holds "  - write1: is no target of the rule (ours)" "$work/out"
expect 0 "$CTL" explain --key player-7 $group/Gate/1 $group/Hall
holds "  - read1: has not the message's tag (early)" "$work/out"
holds "in       $group/Hall/new1: share" "$work/out"
holds "owner    $group/Hall/new1" "$work/out"
expect 0 "$CTL" explain --tag v3 $group/Gate/1 $group/Hall
holds "fell back" "$work/out"

# ---- callers -----------------------------------------------------------------------------
expect 0 "$CTL" explain - $group/Hall
holds "in       $group/Hall/far1: share" "$work/out"
expect 0 "$CTL" explain --set app.n.1 - $group/Hall
holds "  - read1: is not of the caller's set" "$work/out"
expect 4 "$CTL" explain $group/Gate/3 $group/Hall
holds "$group/Gate/3 is not registered" "$work/err"

# ---- rights ------------------------------------------------------------------------------
expect 0 "$CTL" explain --method 77 --tag v2 $group/Gate/2 $group/Hall
expect 0 "$CTL" explain --method 77 $group/Gate/2 $group/Hall
holds "  - write1: may not be seen by the caller" "$work/out"
holds "denied   $group/Hall/write1: rule no-orders" "$work/out"
expect 0 "$CTL" explain $group/Gate/2 $group/Hall
holds "acl      strict 4 -> 3" "$work/out"
holds "  - read1: may not be seen by the caller" "$work/out"
holds "denied   $group/Hall/read1: rule no-entry: uid" "$work/out"
expect 0 "$CTL" explain --json $group/Gate/2 $group/Hall
json "$work/out"
holds '"kind":"denied","path":"'"$group/Hall/read1"'"' "$work/out"

# ---- an owner that dies, and a limit: send waits for what passes by itself ---------------
background keyed_1 "$CTL" recv --lines $group/Keyed/1
first=$last
background keyed_2 "$CTL" recv --lines $group/Keyed/2
both_there() { [ "$("$CTL" ls --json $group/Keyed | grep -c '"state":"READY"')" -eq 2 ]; }
until_true "the owners are not there" both_there
key=0
until "$CTL" explain --key "k$key" - $group/Keyed | grep -q "^owner .*/1\$"; do key=$((key + 1)); done
kill -KILL "$first"
wait "$first" 2>/dev/null || true
until_true "nobody waits for it" sh -c "'$CTL' explain --key k$key - $group/Keyed | grep '^owner.*died'"
printf 'one\ntwo\nthree\n' >"$work/lines"
expect 0 "$CTL" send --lines --key "k$key" $group/Keyed <"$work/lines"
until_true "not all has come" cmp "$work/lines" "$work/keyed_2"

# ---- nobody, and wrong command lines -----------------------------------------------------
expect 4 "$CTL" explain --labels 0,7 $group/Gate/1 $group/Hall
holds "  - read1: is no target of the rule (seven)" "$work/out"
holds "nobody could get such a message" "$work/err"
expect 4 "$CTL" explain - $group/Nobody
expect 2 "$CTL" explain $group/Hall
expect 2 "$CTL" explain - $group/Hall/read1
expect 2 "$CTL" explain $group $group/Hall
expect 2 "$CTL" explain --method x - $group/Hall
expect 2 "$CTL" explain --labels 1,2,3,4,5 - $group/Hall
expect 1 "$CTL" explain --tag a,b - $group/Hall

# ---- JSON --------------------------------------------------------------------------------
expect 0 "$CTL" explain --json --method 7 $group/Gate/1 $group/Hall
json "$work/out"
python3 - "$work/out" "$group" <<'END' || fail "not what it should tell: $(cat "$work/out")"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
hall = sys.argv[2] + "/Hall/"
stages = [row["stage"] for row in rows if row["kind"] == "stage"]
assert stages == ["state", "acl", "realm", "set", "tag", "rules", "locality", "health"], stages
out = {row["path"]: (row["stage"], row["rule"]) for row in rows if row["kind"] == "out"}
assert out == {hall + "idle": ("state", ""), hall + "far1": ("set", ""), hall + "new1": ("tag", ""),
               hall + "write1": ("rules", "reads")}, out
inside = [row["path"] for row in rows if row["kind"] == "in"]
assert inside == [hall + "read1"], inside
target = [row for row in rows if row["kind"] == "target"]
assert len(target) == 1 and target[0]["instances"] == 5, target
END
echo "explain tells what routes"
