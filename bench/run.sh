#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/run.sh BUILD [NAME...] [options of bench]: one run at a time on this machine.
# With --peers all or a list, installs the peers' packages first (Debian) and builds them in.
set -eu
build=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
exec 9>"${TMPDIR:-/tmp}/ringbus-bench.lock"
flock 9

peers=""
partial=""
quick=""
previous=""
for word in "$@"; do
    case $word in
    --peers=*) peers=${word#--peers=} ;;
    --quick | --smoke | --list | --help | --results*) partial=yes ;;
    --*) ;;
    *)
        case $previous in
        --peers) peers=$word ;;
        --seconds | --json | --results) ;;
        *) partial=yes ;;
        esac
        ;;
    esac
    [ "$word" = --quick ] && quick=yes
    previous=$word
done

# What is missing of the packages that the wanted peers need.
missing=""
if [ -n "$peers" ] && [ "$peers" != none ] && command -v apt-get >/dev/null; then
    while read -r name packages; do
        case ",$peers," in *",$name,"* | *,all,*) ;; *) continue ;; esac
        for package in $packages; do
            dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
        done
    done <"$here/peers.txt"
fi
if [ -n "$missing" ]; then
    echo "bench: installing$missing"
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq >/dev/null
    # shellcheck disable=SC2086 # a list of words is meant
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
    cmake "$build" >/dev/null
fi

# Peers are left out of a quick run unless they are asked for.
[ -n "$quick" ] && [ -z "$peers" ] && set -- "$@" --peers none
# Only a whole run may say what the results are.
[ -n "$partial" ] || set -- "$@" --results "$here"
cmake --build "$build" --target bench bench_busy ringbusd >/dev/null
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)
status=0
"$build/bench/bench" --ringbusd "$build/daemon/ringbusd" --config "$here/../configs/bench.yaml" \
    --scripts "$here" --commit "$commit" "$@" || status=$?
if [ -z "$partial" ] && command -v gnuplot >/dev/null; then
    "$here/plot.sh" "$here/results" || status=$?
fi
exit $status
