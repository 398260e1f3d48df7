#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh DIRECTORY BUILD: runs an example and compares what it prints with expected.txt.
set -eu
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$1/run.sh" "$2" >"$out"
diff -u "$1/expected.txt" "$out"
echo "as expected"
