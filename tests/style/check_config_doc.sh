#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/configuration.md, configs/ringbusd.yaml and its man page say what bus/config_schema.c and
# bus/governance_schema.c say.
# Usage: check_config_doc.sh GENERATOR [ROOT [--write]]
set -eu
generator=$1
cd "${2:-$(dirname "$0")/../..}"
doc=docs/configuration.md
yaml=configs/ringbusd.yaml
man=docs/man/ringbusd.yaml.5
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

"$generator" table >"$new/keys"
"$generator" bridge >"$new/bridge"
"$generator" policies >"$new/policies"
"$generator" yaml >"$new/yaml"
"$generator" man >"$new/man"
# Each table stands between two marks; everything else in the page is written by hand.
awk -v folder="$new" '
    /^<!-- (keys|bridge|policies): end/ { inside = 0 }
    !inside { print }
    /^<!-- (keys|bridge|policies): begin/ {
        inside = 1
        marks++
        table = folder "/" substr($2, 1, length($2) - 1)
        while ((getline line < table) > 0) print line
    }
    END { if (marks != 3) exit 1 }
' "$doc" >"$new/doc" || { echo "$doc: marks of the tables not found"; exit 1; }

if [ "${3:-}" = --write ]; then
    cp "$new/doc" "$doc"
    cp "$new/yaml" "$yaml"
    cp "$new/man" "$man"
    exit 0
fi
r=0
diff -u "$doc" "$new/doc" || r=1
diff -u "$yaml" "$new/yaml" || r=1
diff -u "$man" "$new/man" || r=1
[ $r = 0 ] || echo "run: cmake --build BUILD --target config_docs"
exit $r
