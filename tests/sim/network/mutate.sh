#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mutate.sh [SOURCE_DIR [CC [SECONDS [PATTERN]]]]: breaks one rule of the library or the daemon after the
# other, in a copy, and expects a history that notices. A rule whose break nobody notices is
# either not simulated or not needed.
set -eu
src=$(cd "${1:-$(dirname "$0")/../../..}" && pwd)
cc=${2:-cc}
seconds=${3:-12}
pattern=${4:-.}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
survivors=0
mutants=0
flags="-std=c11 -D_GNU_SOURCE -DRINGBUS_VERSION_TEXT=\"0\" -O1 -w -I$work/src -I$work/src/libclient/include"
redirected="-include $work/src/tests/sim/network/redirect.h"

object() { echo "$work/$(echo "$1" | tr / _).o"; }
compile() { # compile FILE
    case $1 in
    tests/* | daemon/loop_uring.c) $cc $flags -c "$work/src/$1" -o "$(object "$1")" ;;
    *) $cc $flags $redirected -c "$work/src/$1" -o "$(object "$1")" ;;
    esac
}
link_all() { $cc "$work"/*.o -o "$work/sim_network" -lxxhash -lck -lyaml -luring -lcrypto; }

mkdir "$work/src"
for folder in shm bus libclient daemon; do
    cp -r "$src/$folder" "$work/src/$folder"
done
mkdir -p "$work/src/tests/sim"
cp -r "$src/tests/sim/network" "$work/src/tests/sim/network"
cd "$work/src"
for file in shm/*.c bus/*.c libclient/*.c daemon/*.c tests/sim/network/*.c; do
    [ "$file" = daemon/main.c ] || compile "$file"
done
link_all
"$work/sim_network" --seconds 2 >/dev/null || {
    echo "the histories fail before anything is broken"
    exit 1
}

mutate() { # mutate NAME FILE SED_SCRIPT
    echo "$1" | grep -q "$pattern" || return 0
    mutants=$((mutants + 1))
    sed -i "$3" "$2"
    if cmp -s "$src/$2" "$2"; then
        echo "$1: nothing to change in $2" >&2
        exit 1
    fi
    compile "$2"
    link_all
    if timeout 60 "$work/sim_network" --seconds "$seconds" >"$work/log" 2>&1; then
        echo "SURVIVED: $1"
        survivors=$((survivors + 1))
    else
        echo "caught: $1: $(sed -n 's/^sim_network: seed \([0-9]*\), [^:]*: \(.*\)/\2 (seed \1)/p' "$work/log" | head -1)"
    fi
    cp "$src/$2" "$2"
    compile "$2"
}

mutate "READY_ACK is not taken" bus/link.c 's/        link->mine = RBI_USE_UP;/        link->mine = RBI_USE_WAIT_ACK;/'
mutate "judges do not suspect themselves" bus/link.c 's/return elapsed(now_ns, link->asked_ns);/return 0;/'
mutate "no PING" bus/link.c 's/out->todo |= RBI_LINK_DO_SEND_PING;/;/'
mutate "a dead sender's lane is not read to its end" libclient/poll.c 's/^    if (end->leave_reason != RBI_REASON_BAD_PEER \&\& !end->read_out) {/    if (false) {/'
mutate "a chunk goes out again while it is read" libclient/residue.c 's/if (end->bell < 0 || bus->closing/if (true || end->bell < 0 || bus->closing/'
mutate "a chunk is forgotten when its link ends" libclient/end.c 's/rbi_refs_drop_all(&end->refs, &bus->pool);/;/'
mutate "no second look before sleeping" libclient/wait.c 's/if (second_look(bus) || some_room(bus)/if (some_room(bus)/'
mutate "nothing is given back" libclient/undelivered.c 's/^static void give_back_all(.*/&\n/;s/^    if (rbi_lane_tx_is_shut(&end->tx)) {/    if (true) {/'
mutate "given back as not seen, always" libclient/undelivered.c 's/out->maybe_seen = unread->doubtful .*/out->maybe_seen = false;/'
mutate "speaks before it is registered" libclient/control.c 's/control->phase != RBI_CONTROL_ON \&\& !greets/false/'
mutate "a new daemon repeats numbers of lives" daemon/registry_numbers.c 's/    for (unsigned i = 0; i < BASE_TRIES .*/    registry->next_incarnation = brought + 1;\n    for (unsigned i = 0; i < 0; i++) {/'
mutate "an introduction that failed is not tried again" libclient/target.c 's/    member->retry_ns = bus->now_ns + ns - .*/    member->retry_ns = RBI_NEVER;/'
mutate "deaths are not told" daemon/registry.c 's/rbi_watch_notify(daemon, endpoint, RBI_CHANGE_REMOVED, reason);/;/'
mutate "a message to oneself does not wake" libclient/send.c 's/^    if (end->loop) {/    if (end->loop) {\n        return;/'
mutate "what goes on is given back as well" libclient/redeliver.c 's/^        if (go_on(bus, end, returned)) {/        if (go_on(bus, end, returned), false) {/'
mutate "who drains is dealt to" libclient/drain.c 's/^        end->drain.peer = true;/        end->drain.peer = false;/'
mutate "slots are gained, and never lost" libclient/owned.c 's/^        tell(bus, RINGBUS_EVENT_SLOTS_LOST, now, before, cluster->epoch);/        ;/'
mutate "keys of others are not refused" libclient/owned.c 's/^        return owns(owned, bus->self.instance, message->key);/        return true;/'
mutate "slots stay with whom a daemon before knew" libclient/directory.c 's/^    if (differs) {/    if (false) {/'
mutate "a side is not unmapped" libclient/end.c 's/rbi_segment_deinit(&end->peer_side);/;/g'
echo "$mutants mutants, $survivors survived"
[ "$survivors" -eq 0 ]
