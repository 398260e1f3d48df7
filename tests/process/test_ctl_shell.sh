#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_ctl_shell.sh ROOT RINGBUSCTL RINGBUSD: bash completion offers what there is; the man
# page names every command, option and exit code.
set -eu
root=$1
CTL=$2
RINGBUSD=$3
. "$(dirname "$0")/test_ctl_setup.sh"
. "$root/daemon/ctl/completion/ringbusctl.bash"
man=$root/docs/man/ringbusctl.1

# offers WORD... -- EXPECTED...: what is offered for the last of the words
offers() {
    COMP_WORDS=("$CTL")
    while [ "$1" != -- ]; do
        COMP_WORDS+=("$1")
        shift
    done
    shift
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _ringbusctl
    [ "${COMPREPLY[*]}" = "$*" ] || fail "after ${COMP_WORDS[*]:1}: '${COMPREPLY[*]}' instead of '$*'"
}
offers s -- status show set send stage
offers help pi -- ping
offers send --li -- --lines
offers status --l --
offers ping --count "" --
offers be -- bench
offers bench --s -- --socket --seconds --size --sleep
offers bench --size "" --
offers bridge "" -- status confirm
offers routes "" --
offers check "$root/daemon/ctl/main." -- "$root/daemon/ctl/main.c"
daemon_start
background receiver "$CTL" recv /Demo/cn/pc/w1/g1/Done/1
receiver=$last
until_true "recv is not there" "$CTL" show /Demo/cn/pc/w1/g1/Done/1
offers send /D -- /Demo/cn/pc/w1/g1/Done/1
finish "$receiver" 0

for word in $("$CTL" help --json | sed -n 's/.*"command":"\([^"]*\)".*/\1/p'); do
    grep -qE "^\.B[IR]* \"?$word" "$man" || fail "the man page has no $word"
done
for option in $("$CTL" help | grep -oE '^  --[a-z]+' | tr -d ' '); do
    grep -qF -- "${option//-/\\-}" "$man" || fail "the man page has no $option"
done
"$CTL" help | sed -n 's/^  [0-9]  //p' | while read -r text; do
    grep -qxF "$text" "$man" || fail "the man page does not say '$text'"
done
echo "completion and man page know all of it"
