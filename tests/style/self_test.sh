#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The checks must fail: each is shown a small tree that is right, then the same tree with
# one thing wrong.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
spdx='/* SPDX-License-Identifier: Apache-2.0 */'

fresh() {
    rm -rf "${tree:?}"/*
    mkdir "$tree/shm" "$tree/bus" "$tree/libclient" "$tree/daemon" "$tree/examples"
    printf '%s\n' "$spdx" '#include "shm/b.h"' '#include <string.h>' >"$tree/shm/a.c"
    printf '%s\n' "$spdx" '/* R1: pairs with A1. */' 'rbi_store_rel(p, 1);' \
        '/* A1: pairs with R1. */' 'x = rbi_load_acq(p);' \
        '/* B1: pairs with B2. */' 'rbi_store_seq(p, 1);' \
        '/* B2: pairs with B1. */' 'x = rbi_load_seq(p);' \
        '/* R3: pairs with A3 (c.c). */' 'rbi_store_rel(p, 1);' >"$tree/shm/b.h"
    printf '%s\n' "$spdx" '#include "bus/a.h"' '#include "shm/b.h"' >"$tree/bus/a.c"
    printf '%s\n' "$spdx" '#include "libclient/c.h"' '#include "ringbus/ringbus.h"' \
        '/* A3: pairs with R3 (b.h). */' 'x = rbi_load_acq(p);' >"$tree/libclient/c.c"
    printf '%s\n' "$spdx" '#include "daemon/d.h"' '#include "bus/a.h"' >"$tree/daemon/d.c"
    printf '%s\n' "$spdx" '#include <ringbus/ringbus.h>' '#include "local.h"' >"$tree/examples/e.c"
    printf '%s\n' "$spdx" >"$tree/examples/local.h"
}

passes() { # passes CHECK
    fresh
    if ! out=$("$here/$1" "$tree" 2>&1); then
        echo "$1 refuses a tree that is right: $out"
        failed=1
    fi
}

# fails CHECK FILE LINE: appending LINE to FILE must make CHECK fail and name the file.
fails() {
    fresh
    printf '%s\n' "$3" >>"$tree/$2"
    wrong "$1" "$2" "$3"
}
wrong() {
    if out=$("$here/$1" "$tree" 2>&1); then
        echo "$1 does not see in $2: $3"
        failed=1
    elif ! printf '%s\n' "$out" | grep -q "$2"; then
        echo "$1 fails without naming $2 ($3): $out"
        failed=1
    fi
}

passes check_includes.sh
fails check_includes.sh shm/a.c '#include "bus/a.h"'
fails check_includes.sh shm/a.c '#include <ringbus/ringbus.h>'
fails check_includes.sh bus/a.c '#include "daemon/d.h"'
fails check_includes.sh bus/a.c '#include "ringbus/ringbus.h"'
fails check_includes.sh bus/a.c '# include <sys/socket.h>'
fails check_includes.sh bus/a.c '#include <time.h>'
fails check_includes.sh libclient/c.c '#include "daemon/d.h"'
fails check_includes.sh daemon/d.c '#include "libclient/c.h"'
fails check_includes.sh daemon/d.c '#include "../libclient/c.h"'
fails check_includes.sh examples/e.c '#include "shm/b.h"'
fails check_includes.sh examples/e.c '#include "bus/a.h"'
fails check_includes.sh examples/e.c '#include "nowhere.h"'

# Headers that a compiler reads, in place of those that are there for labels.
compiled() {
    fresh
    printf '%s\n' "$spdx" '#include <stdint.h>' 'struct s { uint32_t a; };' >"$tree/shm/b.h"
    printf '%s\n' "$spdx" '#include "shm/b.h"' 'struct t { struct s s; };' >"$tree/bus/a.h"
}
compiled
if ! out=$("$here/check_headers.sh" "$tree" 2>&1); then
    echo "check_headers.sh refuses a tree that is right: $out"
    failed=1
fi
sed -i '/include/d' "$tree/bus/a.h"
wrong check_headers.sh bus/a.h 'a type of a header that is not included'
compiled
printf '%s\n' 'void f(struct nowhere *p);' >>"$tree/bus/a.h"
wrong check_headers.sh bus/a.h 'a structure known to its parameter list only'

passes check_orders.sh
fails check_orders.sh shm/a.c 'rbi_store_rel(p, 1);'
fails check_orders.sh libclient/c.c 'x = rbi_load_acq(p);'
fails check_orders.sh shm/a.c 'x = rbi_load_seq(p);'
fails check_orders.sh shm/a.c '/* R7: pairs with A7. */'
fails check_orders.sh shm/a.c '/* A1: pairs with R1. */'
fails check_orders.sh bus/a.c 'x = rbi_load_acq(p);'
fails check_orders.sh shm/b.h '/* A1: pairs with R9. */'
fails check_orders.sh shm/b.h '/* B3: pairs with B2. */'
fails check_orders.sh shm/b.h '/* R8: pairs with B1. */'
swap() { # swap FILE SED CHECK: an edit that must be seen
    fresh
    sed -i "$2" "$tree/$1"
    wrong check_orders.sh "$1" "$2"
}
# Files of one object share their labels; here A3 moves from c.c to c_more.c.
fresh
mv "$tree/libclient/c.c" "$tree/libclient/c_more.c"
if ! out=$("$here/check_orders.sh" "$tree" 2>&1); then
    echo "check_orders.sh refuses a partner in another file of the object: $out"
    failed=1
fi
swap shm/b.h 's/rbi_store_seq/rbi_store_rel/'
swap shm/b.h 's/rbi_load_acq/rbi_load_seq/'
swap shm/b.h 's/x = rbi_load_acq(p)/rbi_store_rel(p, 1)/'
swap shm/b.h 's/A1: pairs with R1/A1: pairs with R3/'
swap shm/b.h 's/ (c.c)//'
swap libclient/c.c 's/ (b.h)//'

passes check_banned.sh
for call in 'strcpy(a, b);' 'strcat(a, b);' 'sprintf(a, "x");' 'gets(a);' 'x = rand();' 'x = rand ();' \
    'p = alloca(9);' 'x = atoi(s);' '/* TODO: later */' '/* FIXME */' '/* XXX */' 'int x; ' 'int x;	'; do
    fails check_banned.sh shm/a.c "$call"
done
fails check_banned.sh libclient/c.c "    clock_gettime(CLOCK_REALTIME, &now);"
fails check_banned.sh daemon/d.c "    now = time(NULL);"
fails check_banned.sh bus/a.c "/* $(printf '%0100d' 0) */"
fresh
printf '%s\n' 'int x;' >"$tree/bus/a.c"
wrong check_banned.sh bus/a.c 'no SPDX line'
fresh
printf '%s\n' 'snprintf(a, n, "x"); mkstemp("/tmp/XXXXXX"); operand(x); fgets(a, n, f);' >>"$tree/bus/a.c"
if ! out=$("$here/check_banned.sh" "$tree" 2>&1); then
    echo "check_banned.sh refuses what is allowed: $out"
    failed=1
fi

if command -v git >/dev/null; then
    fresh
    git -C "$tree" init --quiet
    printf '%s\n' '*.log' >"$tree/.gitignore"
    if ! out=$("$here/check_tracked.sh" "$tree" 2>&1); then
        echo "check_tracked.sh refuses a tree that is right: $out"
        failed=1
    fi
    printf '%s\n' 'core.*' >"$tree/.gitignore"
    printf '%s\n' "$spdx" >"$tree/libclient/core.c"
    wrong check_tracked.sh libclient/core.c 'an ignored source'
    rm "$tree/libclient/core.c"
    : >"$tree/crash-0a"
    git -C "$tree" add crash-0a
    wrong check_tracked.sh crash-0a 'a finding of a fuzzer'
    rm -rf "$tree/.git" "$tree/.gitignore"
fi

# Documents: a tree of their own on top, since they point at much.
documented() {
    fresh
    mkdir -p "$tree/docs/design" "$tree/docs/internals" "$tree/docs/man" "$tree/libclient/include/ringbus" "$tree/tests/unit"
    printf '%s\n' '    rbi_log(on ? RBI_LOG_INFO : RBI_LOG_DEBUG,' '            "ready", "a=%d", 1);' \
        '    rbi_log(RBI_LOG_INFO, start ? "drain" : "undrain", "path=%s", path);' >>"$tree/daemon/d.c"
    printf '%s\n' '    {"uptime_ms", status_uptime},' >"$tree/daemon/query.c"
    printf '%s\n' '#define RBI_DAEMON_COUNTERS(X) \' '    X(deaths)' >"$tree/daemon/daemon.h"
    printf '%s\n' '    X(FULL, -1, RETRY, "full") \' '    RINGBUS_REASON_NONE = 0,' '    RINGBUS_REASON_LEFT = 1,' \
        '    RINGBUS_EVENT_READY = 1,' 'RINGBUS_API int ringbus_open(int a);' '#define RINGBUS_STATS(X) \' '    X(sent, "messages")' \
        >"$tree/libclient/include/ringbus/ringbus.h"
    printf '%s\n' '# Operating' '## The log' '| log line | means |' '|---|---|' '| `ready` | so |' '| `drain`, `undrain` | `so` |' '' \
        '| reason |' '|---|' '| `RINGBUS_REASON_LEFT` 1 |' '' '| event |' '|---|' '| `RINGBUS_EVENT_READY` 1 |' '' \
        '| error |' '|---|' '| `RINGBUS_E_FULL` -1 |' '' "| daemon's figure |" '|---|' '| `uptime_ms`, `deaths` |' '' \
        "| endpoint's counter |" '|---|' '| `sent` |' '' >"$tree/docs/operating.md"
    printf '%s\n' 'Proved by `test_a` and `sim_b`, in `tests/unit`.' >"$tree/docs/guarantees.md"
    printf '%s\n' '[log](../operating.md#the-log)' >"$tree/docs/design/001-a.md"
    printf '%s\n' '' >"$tree/docs/internals/i.md"
    printf '%s\n' '## shm/' '`a`' '## bus/' '`a`' '## libclient/' '`c`' '## daemon/' '`d`, `que*`' \
        >"$tree/docs/internals/sources.md"
    printf '%s\n' '.BR ringbus_open' >"$tree/docs/man/ringbus.3"
    printf '%s\n' '[](docs/operating.md) [](docs/guarantees.md) [](docs/design/001-a.md) [](docs/internals/i.md)' \
        '[](docs/internals/sources.md)' \
        >"$tree/README.md"
    printf '%s\n' "$spdx" >"$tree/tests/unit/test_a.c"
    printf '%s\n' 'ringbus_test(' '    sim_b' '    sim)' >"$tree/tests/unit/CMakeLists.txt"
}
right() { # right CHECK
    documented
    if ! out=$("$here/$1" "$tree" 2>&1); then
        echo "$1 refuses a tree that is right: $out"
        failed=1
    fi
}
edit() { # edit CHECK FILE SED NAME: an edit that must be seen, and its NAME told
    documented
    sed -i "$3" "$tree/$2"
    if out=$("$here/$1" "$tree" 2>&1); then
        echo "$1 does not see in $2: $3"
        failed=1
    elif ! printf '%s\n' "$out" | grep -q -- "$4"; then
        echo "$1 fails without naming $4 ($3): $out"
        failed=1
    fi
}
right check_operating.sh
edit check_operating.sh daemon/d.c 's/"ready"/"steady"/' 'no line for log line steady'
edit check_operating.sh daemon/d.c 's/"undrain"/"other"/' 'explains log line undrain'
edit check_operating.sh daemon/d.c 's/"ready"/event/' 'no literal'
edit check_operating.sh daemon/query.c 's/uptime/downtime/' "figure downtime_ms"
edit check_operating.sh daemon/daemon.h 's/deaths/births/' "figure births"
edit check_operating.sh libclient/include/ringbus/ringbus.h 's/X(sent/X(lost/' "counter lost"
edit check_operating.sh libclient/include/ringbus/ringbus.h 's/X(FULL, -1/X(FULL, -2/' 'error RINGBUS_E_FULL -2'
edit check_operating.sh libclient/include/ringbus/ringbus.h 's/LEFT = 1/LEFT = 2/' 'reason RINGBUS_REASON_LEFT 2'
edit check_operating.sh libclient/include/ringbus/ringbus.h 's/EVENT_READY/EVENT_UP/' 'event RINGBUS_EVENT_UP 1'
edit check_operating.sh docs/operating.md '/`sent`/p' 'counter sent twice'
edit check_operating.sh docs/operating.md 's/^| error |/| code |/' 'RINGBUS_E_FULL -1'

right check_docs.sh
edit check_docs.sh docs/man/ringbus.3 's/open/close/' 'nothing of ringbus_open'
edit check_docs.sh docs/design/001-a.md 's/operating/upgrading/' 'upgrading.md'
edit check_docs.sh docs/design/001-a.md 's/the-log/the-bog/' 'no such heading'
edit check_docs.sh docs/guarantees.md 's/test_a/test_z/' 'no test test_z'
edit check_docs.sh docs/guarantees.md 's/sim_b/sim_z/' 'no test sim_z'
edit check_docs.sh docs/guarantees.md 's,tests/unit,tests/none,' 'tests/none is not there'
edit check_docs.sh docs/internals/sources.md 's/que/quo/' 'says nothing of daemon/query.c'
edit check_docs.sh docs/internals/sources.md 's/`c`/`c`, `e`/' 'libclient/ has no e'
edit check_docs.sh README.md 's,(docs/internals/i.md),,' 'docs/internals/i.md: README.md'
documented
cp "$tree/docs/design/001-a.md" "$tree/docs/design/001-b.md"
printf '%s\n' '[](docs/design/001-b.md)' >>"$tree/README.md"
wrong check_docs.sh docs/design/001 'a number given twice'
exit $failed
