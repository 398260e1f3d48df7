#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sources that git ignores: they build here and nowhere else; and what a fuzzer has left behind,
# which belongs into the corpus of its target. Usage: check_tracked.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/../..}"
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    exit 77 # a release has no history
fi
ignored=$(git ls-files --others --ignored --exclude-standard -- \
    '*.c' '*.h' '*.cpp' '*.sh' '*.yaml' '*.cmake' '*CMakeLists.txt' ':!build')
if [ -n "$ignored" ]; then
    printf '%s: ignored by .gitignore\n' $ignored
    exit 1
fi
left=$(git ls-files 'crash-*' 'leak-*' 'oom-*' 'timeout-*' 'slow-unit-*' ':!tests/fuzz/corpus')
if [ -n "$left" ]; then
    printf '%s: left behind by a fuzzer\n' $left
    exit 1
fi
