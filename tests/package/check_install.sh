#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_install.sh CMAKE BUILD CONSUMER CC RINGBUSD: installs into an empty prefix, builds
# programs against what is there, by pkg-config, by find_package() and in C++, and runs them.
set -eu
cmake=$1
build=$2
consumer=$3
cc=$4
ringbusd=$5

work=$(mktemp -d "${TMPDIR:-/tmp}/ringbus-package.XXXXXX")
daemon=
stop() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 1' INT TERM

fail() {
    echo "package: $*" >&2
    exit 1
}

prefix=$work/prefix
"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log" 2>&1 || {
    cat "$work/install.log" >&2
    fail "cannot install"
}
# What the unit names is there, and a configuration that was edited stays as it is.
unit=$prefix/lib/systemd/system/ringbusd.service
document=$(sed -n 's,^Documentation=file:.*/share/,share/,p' "$unit")
config=$(sed -n 's,^ExecStart=.* --config .*/\(etc/[^ ]*\).*,\1,p' "$unit")
[ -n "$document" ] && [ -f "$prefix/$document" ] || fail "the unit's Documentation= is not installed"
[ -n "$config" ] && [ -f "$prefix/$config" ] || fail "the unit's configuration is not installed"
"$ringbusd" --check --config "$prefix/$config" || fail "the installed configuration is wrong"
echo '{}' >"$prefix/$config"
"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log" 2>&1 || fail "cannot install again"
[ "$(cat "$prefix/$config")" = '{}' ] || fail "the configuration was overwritten"

libdir=$(dirname "$(find "$prefix" -name 'libringbus.so' | head -n 1)")
[ -n "$libdir" ] || fail "no libringbus.so below the prefix"
# Nothing but the prefix may be found: neither the sources nor the build.
cd "$work"

# The public header with all of its parts, and no internal one.
(cd "$prefix/include" && find . -type f | sed 's,^./,,' | sort) >installed
sed -n 's/^#include <\(ringbus\/.*\)>$/\1/p' "$prefix/include/ringbus/ringbus.h" >parts
echo ringbus/ringbus.h | sort - parts | cmp -s installed - || fail "headers installed: $(cat installed)"

# Exports are ringbus_*, of one version; everything the header declares is there.
nm -D --defined-only "$libdir/libringbus.so" | awk '{ print $3 }' >exports
grep -v -E '^(ringbus_[a-z_]+@@RINGBUS_0\.1|RINGBUS_0\.1(@@RINGBUS_0\.1)?)$' exports && fail "exports of other names"
sed -n 's/.*\<\(ringbus_[a-z_]*\)(.*/\1/p' "$prefix"/include/ringbus/*.h | sort -u >mentioned
for name in $(cat mentioned); do
    case $name in
    # Types of callbacks, and an inline function.
    ringbus_options_default) continue ;;
    esac
    grep -q "^$name@@" exports || fail "$name is in the header, not in the library"
done
[ "$(grep -c '^ringbus_' exports)" -ge 30 ] || fail "too few exports"
soname=$(readelf -d "$libdir/libringbus.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = libringbus.so.0 ] || fail "soname is $soname"
readelf -d "$libdir/libringbus.so" | grep -E 'NEEDED.*(liburing|libyaml|libcrypto|cmocka)' && fail "needs what only the daemon needs"

"$ringbusd" --socket "$work/bus.sock" >daemon.log 2>&1 &
daemon=$!
n=0
while [ ! -S "$work/bus.sock" ]; do
    n=$((n + 1))
    [ $n -lt 500 ] || fail "ringbusd does not start: $(cat daemon.log)"
    sleep 0.01
done

run() {
    RINGBUS_SOCKET=$work/bus.sock LD_LIBRARY_PATH=$libdir "$@" || fail "$1 ended with $?"
}

# pkg-config, shared and static.
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion ringbus)" = 0.1.0 ] || fail "version of ringbus.pc"
# shellcheck disable=SC2046
$cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$consumer/hello.c" $(pkg-config --cflags --libs ringbus) -o by_pkgconfig
run ./by_pkgconfig
# shellcheck disable=SC2046
$cc -std=c11 "$consumer/hello.c" $(pkg-config --cflags ringbus) "$libdir/libringbus.a" \
    $(pkg-config --static --libs-only-l ringbus | sed 's/-lringbus//') -o by_archive
run ./by_archive

# find_package().
"$cmake" -S "$consumer" -B by_cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >cmake.log 2>&1 &&
    "$cmake" --build by_cmake >>cmake.log 2>&1 || {
    cat cmake.log >&2
    fail "find_package(ringbus)"
}
run by_cmake/hello

# The header in C++ and in the oldest C that it promises.
for standard in c++11 c++17 c++20; do
    # shellcheck disable=SC2046
    c++ -std=$standard -Wall -Wextra -Wpedantic -Werror "$consumer/hello.cpp" $(pkg-config --cflags --libs ringbus) -o in_cpp
done
run ./in_cpp
echo "package: installed library works by pkg-config, archive, find_package() and in C++"
