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
nothing=""
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
    case $word in
    --quick) quick=yes ;;
    --list | --help) nothing=yes ;;
    esac
    previous=$word
done

# What is missing of the packages that this run wants.
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
missing=""
unpack=""
want() { # want PACKAGE...
    for package in "$@"; do
        case $package in
        +*) [ -e "$build/peers/${package#+}" ] || installed "${package#+}" || unpack="$unpack ${package#+}" ;;
        *) installed "$package" || missing="$missing $package" ;;
        esac
    done
}
if command -v apt-get >/dev/null; then
    [ -n "$nothing" ] || want strace
    [ -n "$partial" ] || want gnuplot-nox
    grep -v '^#' "$here/peers.txt" >"$build/peers.list"
    while read -r name packages; do
        # shellcheck disable=SC2086 # a list of words is meant
        case ",$peers," in *",$name,"* | *,all,*) want $packages ;; esac
    done <"$build/peers.list"
fi
unpack_one() { # unpack_one PACKAGE
    folder=$(mktemp -d)
    (cd "$folder" && apt-get download -qq "$1") && mkdir -p "$build/peers" &&
        dpkg-deb -x "$folder"/*.deb "$build/peers" && : >"$build/peers/$1" && rm -r "$folder"
}
install() { # no "set -e" in here: it is asked whether it worked
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    worked=0
    $sudo apt-get update -qq >/dev/null || worked=1
    # shellcheck disable=SC2086 # a list of words is meant
    [ -z "$missing" ] ||
        DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        worked=1
    for package in $unpack; do
        unpack_one "$package" || worked=1
    done
    return $worked
}
if [ -n "$missing$unpack" ]; then
    # shellcheck disable=SC2086 # lists of words are meant
    missing=$(printf '%s\n' $missing | sort -u | tr '\n' ' ')
    # shellcheck disable=SC2086
    unpack=$(printf '%s\n' $unpack | sort -u | tr '\n' ' ')
    echo "bench: installing $missing$unpack"
    # Without these the run is a smaller one; what was asked for by name is missed further down.
    install || echo "bench: not everything could be installed" >&2
fi
# Packages may have come since the last time, by whatever way.
case $peers in "" | none) ;; *) cmake "$build" >/dev/null ;; esac

# Peers are left out of a quick run unless they are asked for.
[ -n "$quick" ] && [ -z "$peers" ] && set -- "$@" --peers none
# Only a whole run may say what the results are.
[ -n "$partial" ] || set -- "$@" --results "$here"
# What an earlier run drew, and this one may not, is not of this run.
[ -n "$partial" ] || rm -f "$here"/results/*.dat "$here"/results/*.png
cmake --build "$build" --target bench bench_busy bench_asleep ringbusd ringbus-bridge >/dev/null
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)
status=0
"$build/bench/bench" --ringbusd "$build/daemon/ringbusd" --config "$here/../configs/bench.yaml" \
    --scripts "$here" --commit "$commit" "$@" || status=$?
if [ -z "$partial" ] && command -v gnuplot >/dev/null; then
    "$here/plot.sh" "$here/results" || status=$?
fi
exit $status
