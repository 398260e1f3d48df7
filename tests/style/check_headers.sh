#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header stands alone: it compiles as the first and only thing of a file, without a warning.
# Usage: check_headers.sh [ROOT]; CC names the compiler
set -eu
cd "${1:-$(dirname "$0")/../..}"
headers=$(for folder in shm bus libclient measure daemon; do
    [ -d "$folder" ] && find "$folder" -name '*.h'
done | LC_ALL=C sort)
[ -n "$headers" ] || { echo "check_headers: no headers"; exit 1; }
# shellcheck disable=SC2086 # a list of words is meant
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -I. -Ilibclient/include -Wall -Wextra -Werror \
    -Wno-unused-function -Wno-unused-const-variable -fsyntax-only -x c $headers
