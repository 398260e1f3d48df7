#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the documents point at is there: files behind relative links and their headings, the tests
# that docs/guarantees.md calls its proofs, folders of tests. README.md links each document,
# numbers of design notes are unique, ringbus.3 names each function, sources.md each source.
# Usage: check_docs.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    printf '%s\n' "$1"
    : >"$scratch/failed" # a variable would be lost with the shell of a pipe
}
# Headings as anchors: lower case, blanks to hyphens, no other punctuation.
anchors() {
    grep -E '^#+ ' "$1" | sed -E 's/^#+ //' | tr '[:upper:] ' '[:lower:]-' | sed 's/[^a-z0-9_-]//g'
}

find . -name build -prune -o -name .git -prune -o -name corpus -prune -o -name '*.md' -print |
    sort >"$scratch/documents"
while read -r document; do
    folder=$(dirname "$document")
    awk '/^```/ { code = !code } !code' "$document" |
        grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//' | sort -u |
        while read -r link; do
            file=${link%%#*}
            case $link in
            *://* | mailto:*) continue ;;
            \#*) file=$document ;;
            *) file=$folder/$file ;;
            esac
            if [ ! -e "$file" ]; then
                fail "$document: $link is not there"
            elif [ "$link" != "${link#*\#}" ] &&
                ! anchors "$file" | grep -qxF -- "${link#*\#}"; then
                fail "$document: $link: no such heading"
            fi
        done
    # A folder or file of tests by its path, in backquotes.
    grep -oE '`tests/[A-Za-z0-9_./-]+`' "$document" | tr -d '`' | sort -u |
        while read -r path; do
            [ -e "$path" ] || fail "$document: $path is not there"
        done
done <"$scratch/documents"

for document in docs/*.md docs/internals/*.md docs/design/*.md; do
    grep -qF "($document)" README.md || fail "$document: README.md does not link it"
done
for number in $(find docs/design -name '[0-9]*.md' -exec basename {} \; | cut -c1-3 | sort |
    uniq -d); do
    fail "docs/design/$number: this number is given twice"
done

# The man page of the library names each of its functions.
cat libclient/include/ringbus/*.h | grep -E '^RINGBUS_API|^ringbus_' |
    grep -oE '\bringbus_[a-z_]+\(' | tr -d '(' | sort -u |
    while read -r function; do
        grep -qE "\b$function\b" docs/man/ringbus.3 ||
            fail "docs/man/ringbus.3: says nothing of $function()"
    done

# The map of the sources names each of them, by itself or as one of "name_*"; and nothing else.
map=docs/internals/sources.md
for folder in shm bus libclient daemon; do
    [ -f "$map" ] || break
    awk -v heading="## $folder/" '/^## / { on = index($0, heading) == 1 } on' "$map" |
        grep -oE '`[a-z_0-9/]+(\*|\.h)?`' | tr -d '`' | grep -v "^$folder/\|^include/\|^internal.h$" |
        sort -u >"$scratch/named"
    : >"$scratch/matched"
    for source in $(cd "$folder" && find . -name '*.c' | sed 's,^./,,; s/\.c$//' | sort); do
        found=''
        while read -r name; do
            # shellcheck disable=SC2254 # a pattern is meant
            case $source in
            $name) found=$name && printf '%s\n' "$name" >>"$scratch/matched" ;;
            esac
        done <"$scratch/named"
        [ -n "$found" ] || fail "$map: says nothing of $folder/$source.c"
    done
    while read -r name; do
        grep -qxF -- "$name" "$scratch/matched" || [ -f "$folder/$name" ] ||
            fail "$map: $folder/ has no $name"
    done <"$scratch/named"
done

# A test is a source of that name or what a CMakeLists.txt of the tests makes.
grep -oE '`(test|sim|stress|model|fuzz|soak|crash)(_[a-z0-9_]+)?`' docs/guarantees.md |
    tr -d '`' | sort -u >"$scratch/tests"
[ -s "$scratch/tests" ] || fail "docs/guarantees.md: names no test"
find tests -name CMakeLists.txt -exec cat {} + | tr -s '[:space:]' ' ' >"$scratch/made"
while read -r test; do
    [ -n "$(find tests -name "$test.c" -o -name "$test.sh" | head -n 1)" ] ||
        grep -qE "(ringbus_test|ringbus_add_test|add_executable)\( ?$test[ )]" "$scratch/made" ||
        fail "docs/guarantees.md: no test $test"
done <"$scratch/tests"
[ ! -e "$scratch/failed" ]
