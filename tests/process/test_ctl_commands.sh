#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_ctl_commands.sh RINGBUSCTL RINGBUSD: every command of ringbusctl against a real daemon.
set -eu
CTL=$1
RINGBUSD=$2
. "$(dirname "$0")/test_ctl_setup.sh"
group=/Demo/cn/pc/w1/g1

# ---- without a daemon --------------------------------------------------------------------
for command in status ls "show $group" watch "recv $group/A/1" "send $group/A" "call $group/A" "ping $group/A"; do
    # shellcheck disable=SC2086 # a list of words is meant
    expect 3 "$CTL" $command </dev/null
    [ ! -s "$work/out" ] || fail "$command printed something without a daemon"
done
expect 3 "$CTL" status --json
json "$work/err"

# ---- wrong command lines -----------------------------------------------------------------
expect 2 "$CTL"
expect 2 "$CTL" dance
expect 2 "$CTL" status now
expect 2 "$CTL" show
expect 2 "$CTL" status --lines
expect 2 "$CTL" ping --count 0 $group/A
expect 2 "$CTL" ping --count 12x $group/A
expect 2 "$CTL" ping --interval 5 $group/A
expect 2 "$CTL" ping --timeout 0 $group/A
expect 2 "$CTL" ping --timeout 61m $group/A
expect 2 "$CTL" ping --timeout
expect 2 "$CTL" status --json=yes
expect 2 "$CTL" help dance
expect 0 "$CTL" --help
expect 0 "$CTL" --version
holds "ringbusctl 0." "$work/out"

# ---- check -------------------------------------------------------------------------------
printf 'daemon:\n  log_level: info\n' >"$work/good.yaml"
printf 'daemon:\n  log_levle: info\n' >"$work/bad.yaml"
expect 0 "$CTL" check "$work/good.yaml"
expect 1 "$CTL" check "$work/bad.yaml"
holds "$work/bad.yaml:2:3: " "$work/out"
expect 1 "$CTL" check --json "$work/bad.yaml"
json "$work/out"
expect 4 "$CTL" check "$work/none.yaml"
expect 0 "$CTL" check - <"$work/good.yaml"

# ---- an empty bus ------------------------------------------------------------------------
daemon_start
expect 0 "$CTL" status
expect 0 "$CTL" status --json
json "$work/out"
expect 0 "$CTL" ls
expect 4 "$CTL" ls $group
expect 4 "$CTL" show $group
expect 2 "$CTL" ls Demo
expect 2 "$CTL" show /Demo//cn
expect 2 "$CTL" recv /Demo/cn
expect 4 "$CTL" send --timeout 200ms $group/Nobody </dev/null
expect 4 "$CTL" call --timeout 200ms $group/Nobody/1 </dev/null
expect 4 "$CTL" ping --timeout 200ms --json $group/Nobody
json "$work/err"

# ---- watch, ls, show ---------------------------------------------------------------------
background watched "$CTL" watch --json --count 3 $group
watcher=$last
background echo.1 "$CTL" recv --lines --echo $group/Echo/1
echo1=$last
until_true "watch does not tell of Echo/1" grep -q Echo/1 "$work/watched"
background echo.2 "$CTL" recv --lines --echo $group/Echo/2
echo2=$last
until_true "Echo/2 is not there" "$CTL" show $group/Echo/2
expect 0 "$CTL" ls $group
holds $group/Echo/1 "$work/out"
expect 0 "$CTL" ls --json $group/Echo
json "$work/out"
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "ls lists $(cat "$work/out")"
lacks /anon "$work/out"

# Features J43: by room, set, tag and state.
expect 0 "$CTL" ls --json --state READY $group/Echo
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "ls --state READY lists $(cat "$work/out")"
expect 0 "$CTL" ls --json --state ok $group/Echo
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "ls --state ok lists $(cat "$work/out")"
expect 4 "$CTL" ls --state DRAINING $group/Echo
expect 4 "$CTL" ls --set a.b.c $group/Echo
expect 4 "$CTL" ls --idc r1 $group/Echo
expect 4 "$CTL" ls --tag v2 $group/Echo
expect 0 "$CTL" metrics
holds "ringbus_daemon_info{version=" "$work/out"
holds "ringbus_instance_ready{path=\"$group/Echo/1\"} 1" "$work/out"
holds "# TYPE ringbus_instance_sent_total counter" "$work/out"
# Every line is a comment or a series with a number, and no series comes twice.
[ -z "$(grep -vE '^(# (HELP|TYPE) ringbus_[a-z_]+ .+|ringbus_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)$' "$work/out")" ] || fail "metrics: no line of the format"
expect 0 "$CTL" metrics
[ -z "$(grep -v '^#' "$work/out" | sed 's/ [0-9]*$//' | sort | uniq -d)" ] || fail "metrics: a series comes twice"
expect 0 "$CTL" metrics $group/Nobody
lacks "ringbus_instance_ready[{]" "$work/out"

# ---- call and ping -----------------------------------------------------------------------
printf 'one\0two\377' >"$work/request"
expect 0 "$CTL" call $group/Echo <"$work/request"
cmp "$work/request" "$work/out" || fail "call: the reply differs"
expect 0 "$CTL" call --tag pre --method 7 --labels 1,2 $group/Echo <"$work/request"
cmp "$work/request" "$work/out" || fail "call with a tag: the reply differs"
expect 2 "$CTL" call --labels 1,2,3,4,5 $group/Echo <"$work/request"
expect 0 "$CTL" call --json --key k $group/Echo/1 <"$work/request"
json "$work/out"
holds '"base64":"b25lAHR3b/8="' "$work/out"
expect 0 "$CTL" ping --count 200 --interval 0 $group/Echo/1
holds "200 sent, 200 answered, min " "$work/out"
expect 0 "$CTL" ping --count 2 --interval 1ms --json $group/Echo
json "$work/out"
[ "$(wc -l <"$work/out")" -eq 3 ] || fail "ping: $(cat "$work/out")"
# Features J4: what the callers have counted, summed, as a histogram that grows.
# Callers that were gone before a sweep could see them are counted to the last call.
metrics_say() { "$CTL" metrics $group/Echo >"$work/metrics" && grep -q "$1" "$work/metrics"; }
until_true "metrics: no calls to Echo/1" metrics_say "ringbus_instance_calls_ok_total{path=\"$group/Echo/1\"} [1-9]"
holds "# TYPE ringbus_cluster_latency_seconds histogram" "$work/metrics"
holds "ringbus_cluster_latency_quantile_seconds{path=\"$group/Echo\",quantile=\"0.99\"}" "$work/metrics"
holds "ringbus_instance_latency_quantile_seconds{path=\"$group/Echo/1\",quantile=\"0.5\"}" "$work/metrics"
in_buckets=$(sed -n 's/^ringbus_cluster_latency_seconds_bucket{.*le="+Inf"} //p' "$work/metrics")
in_count=$(sed -n 's/^ringbus_cluster_latency_seconds_count{.*} //p' "$work/metrics")
[ "$in_buckets" -gt 0 ] && [ "$in_buckets" = "$in_count" ] || fail "metrics: $in_buckets in buckets, $in_count in all"
[ -z "$(grep -vE '^(# (HELP|TYPE) ringbus_[a-z_]+ .+|ringbus_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)$' "$work/metrics")" ] || fail "metrics: no line of the format"
# Who calls whom (features J38), and what fires.
expect 0 "$CTL" deps
expect 0 "$CTL" deps --json $group/Echo
[ ! -s "$work/out" ] || json "$work/out"
expect 0 "$CTL" alarms
expect 2 "$CTL" alarms nonsense
expect 0 "$CTL" show $group/Echo/1
holds "received " "$work/out"
expect 0 "$CTL" show --json $group/Echo/1
json "$work/out"

# ---- the same key, the same instance -----------------------------------------------------
background plain.1 "$CTL" recv --lines $group/Plain/1
plain1=$last
background plain.2 "$CTL" recv --lines $group/Plain/2
plain2=$last
until_true "Plain/1 is not there" "$CTL" show $group/Plain/1
until_true "Plain/2 is not there" "$CTL" show $group/Plain/2
for n in 1 2 3; do
    echo "kept together" | "$CTL" send --lines --key client-7 $group/Plain || fail "send --key"
done
printf 'a\nb\n\nlast without newline' | "$CTL" send --lines $group/Plain/2 || fail "send"
expect 0 "$CTL" call --timeout 2m $group/Plain/1 <"$work/request"
[ ! -s "$work/out" ] || fail "recv without --echo answered with something"
finish "$plain1" 0
finish "$plain2" 0
one=$(grep -c "kept together" "$work/plain.1" || true)
two=$(grep -c "kept together" "$work/plain.2" || true)
[ "$one,$two" = 3,0 ] || [ "$one,$two" = 0,3 ] || fail "one key went to two instances: $one,$two"
printf 'a\nb\n\nlast without newline\n' >"$work/wanted"
grep -v "kept together" "$work/plain.2" | cmp - "$work/wanted" || fail "lines differ"

# ---- one large message, as it is ---------------------------------------------------------
head -c 3000000 /dev/urandom >"$work/blob"
background blob.out "$CTL" recv --count 1 $group/Blob/1
blob=$last
expect 0 "$CTL" send $group/Blob <"$work/blob"
got=0
wait "$blob" || got=$?
[ $got -eq 0 ] || fail "recv --count ended with $got"
cmp "$work/blob" "$work/blob.out" || fail "the message differs"

# ---- a receiver that takes only some, one that hangs --------------------------------------
background some "$CTL" recv --lines --count 2 $group/Some/1
some=$last
until_true "Some/1 is not there" "$CTL" show $group/Some/1
seq 1 5 >"$work/five"
expect 1 "$CTL" send --lines $group/Some/1 <"$work/five"
wait "$some" || fail "recv --count 2 ended with $?" # it says goodbye before it has written all
seq 1 2 | cmp - "$work/some" || fail "recv --count 2 printed $(cat "$work/some")"
kill -STOP "$echo2"
expect 5 "$CTL" call --timeout 300ms $group/Echo/2 <"$work/request"
kill -CONT "$echo2"
expect 0 "$CTL" call $group/Echo/2 <"$work/request"

# ---- drain and undrain -------------------------------------------------------------------
expect 2 "$CTL" drain $group/Echo
expect 2 "$CTL" drain Echo/1
expect 4 "$CTL" drain $group/Echo/77
expect 4 "$CTL" undrain $group/Echo/77
expect 0 "$CTL" drain $group/Echo/1
holds "$group/Echo/1 DRAINING: drained" "$work/out"
expect 0 "$CTL" ls $group/Echo
holds DRAINING "$work/out"
expect 0 "$CTL" ping --count 20 --interval 0 --json $group/Echo
lacks '"peer":"[^"]*/Echo/1"' "$work/out"
expect 0 "$CTL" drain --json $group/Echo/2
json "$work/out"
holds '"progress":"drained"' "$work/out"
expect 5 "$CTL" ping --timeout 200ms $group/Echo
expect 0 "$CTL" undrain $group/Echo/1
holds "$group/Echo/1 READY: not draining" "$work/out"
expect 0 "$CTL" undrain --json $group/Echo/2
json "$work/out"
expect 0 "$CTL" call $group/Echo/1 <"$work/request"
kill -STOP "$echo2"
expect 5 "$CTL" drain --timeout 300ms $group/Echo/2
holds "has not answered in time" "$work/err"
kill -CONT "$echo2"
expect 0 "$CTL" drain $group/Echo/2
expect 0 "$CTL" undrain $group/Echo/2
expect 2 "$CTL" unshield $group/Echo
expect 4 "$CTL" unshield $group/Echo/77
expect 0 "$CTL" unshield --json $group/Echo/2
json "$work/out"
expect 0 "$CTL" unshield $group/Echo/2
holds "$group/Echo/2: " "$work/out"
# One that leaves when it is told to drain has done so in order; one that dies has not.
background leaver "$CTL" recv $group/Leaver/1
leaver=$last
until_true "Leaver/1 is not there" "$CTL" show $group/Leaver/1
kill -STOP "$leaver"
background drained "$CTL" drain --timeout 10s $group/Leaver/1
drained=$last
until_true "Leaver/1 is not draining" grep -q DRAINING "$work/drained"
kill -KILL "$leaver"
got=0
wait "$drained" || got=$?
[ $got -eq 1 ] || fail "drain of one that died ended with $got"

# ---- somebody has that name already ------------------------------------------------------
expect 6 "$CTL" recv $group/Echo/1

# ---- the end -----------------------------------------------------------------------------
finish "$echo1" 0
got=0
wait "$watcher" || got=$?
[ $got -eq 0 ] || fail "watch ended with $got"
json "$work/watched"
holds ADDED "$work/watched"
finish "$echo2" 0
until_true "somebody is left" sh -c "! '$CTL' ls $group"
echo "ringbusctl does what it says"
