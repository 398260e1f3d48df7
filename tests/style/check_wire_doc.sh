#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/internals/wire.md says what bus/frame.h and bus/frame_field.h say.
# Usage: check_wire_doc.sh GENERATOR [ROOT [--write]]
set -eu
generator=$1
cd "${2:-$(dirname "$0")/../..}"
doc=docs/internals/wire.md
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

"$generator" kinds >"$new/kinds"
"$generator" frames >"$new/frames"
# Each part stands between two marks; everything else in the page is written by hand.
awk -v folder="$new" '
    /^<!-- (kinds|frames): end/ { inside = 0 }
    !inside { print }
    /^<!-- (kinds|frames): begin/ {
        inside = 1
        marks++
        part = folder "/" substr($2, 1, length($2) - 1)
        while ((getline line < part) > 0) print line
    }
    END { if (marks != 2) exit 1 }
' "$doc" >"$new/doc" || { echo "$doc: marks of the tables not found"; exit 1; }

if [ "${3:-}" = --write ]; then
    cp "$new/doc" "$doc"
    exit 0
fi
diff -u "$doc" "$new/doc" || { echo "run: cmake --build BUILD --target wire_doc"; exit 1; }
