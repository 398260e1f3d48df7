#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_ctl_docs.sh ROOT DOCUMENT [RINGBUSCTL [--write]]: what a document quotes is what there is.
# After "<!-- ringbusctl ARGUMENTS -->" the next code block is that command's output; after
# "<!-- include FILE: NAME -->" it is what lies in FILE between the comments begin: NAME and
# end: NAME. Without --write a difference fails.
set -eu
root=$1
document=$2
ctl=${3:-}
new=$(mktemp)
trap 'rm -f "$new"' EXIT
awk -v root="$root" -v ctl="$ctl" '
function quote_command(arguments,    line, command) {
    if (ctl == "") { print "no ringbusctl given" > "/dev/stderr"; exit 1 }
    command = ctl " " arguments
    while ((command | getline line) > 0) print line
    close(command)
}
function quote_file(what,    file, name, line, on, any) {
    file = what; sub(/: .*/, "", file); name = what; sub(/.*: /, "", name)
    while ((getline line < (root "/" file)) > 0) {
        if (line == "/* end: " name " */") on = 0
        if (on) { print line; any = 1 }
        if (line == "/* begin: " name " */") on = 1
    }
    close(root "/" file)
    if (!any) { print file " has no part " name > "/dev/stderr"; exit 1 }
}
inside && /^```/ { inside = 0 }
inside { next }
{ print }
/^<!-- ringbusctl .* -->$/ || /^<!-- include .*: .* -->$/ { pending = $0; next }
pending != "" && /^```/ {
    what = pending; sub(/^<!-- [a-z]+ /, "", what); sub(/ -->$/, "", what)
    if (pending ~ /^<!-- ringbusctl/) quote_command(what); else quote_file(what)
    pending = ""; inside = 1; found++
}
END { if (!found || pending != "") { print "nothing is quoted" > "/dev/stderr"; exit 1 } }
' "$root/$document" >"$new"
if [ "${4:-}" = --write ]; then
    cp "$new" "$root/$document"
else
    diff -u "$root/$document" "$new"
fi
echo "$document quotes what there is"
