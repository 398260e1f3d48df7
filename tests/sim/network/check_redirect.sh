#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_redirect.sh OBJECT...: what was built for the simulator calls no kernel but the simulated
# one. Everything else that it leaves undefined is named here.
set -eu
own='rbi_|ringbus_|sim_|ck_|XXH3_'
libc='mem(chr|cmp|cpy|move|set)|str(chr|cmp|error_r|errordesc_np|len|ncmp|ncpy|nlen|rchr|spn|cspn|str|tok_r|toull|tol|toul)'
other='(v?snprintf|fprintf|explicit_bzero|abort|stderr|qsort|bsearch|geteuid|getegid|getuid|sigaddset|sigemptyset)'
compiler='__divti3|__udivti3|__umodti3|__udivmodti4|__tls_get_addr|memrchr'
# Locks are taken though there are no threads here; a barrier orders nothing among fibers.
threads='pthread_(self|join|mutex_(init|destroy|lock|unlock)|cond_(init|signal|wait))|syscall'
private='__errno_location|__isoc99_sscanf|__sched_cpucount|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_'
sanitizers='__(asan|ubsan|tsan|sanitizer|gcov)_.*'
tables='program_invocation_short_name'
# Of other hosts, and there are none in the simulation: the bridge is a process, which no simulated
# daemon is configured to start, and what it has of the loop carries streams, which only it has.
hosts='environ|kill|waitpid|sigfillset|posix_spawn.*|recv|io_uring_(un)?register_buf_ring'
names=$(nm -u "$@")
undefined=$(printf '%s\n' "$names" | awk '$1 == "U" { print $2 }' | sort -u |
    grep -Evx "($own).*|$libc|$other|$private|$sanitizers|$tables|$compiler|$threads|$hosts" || true)
if [ -n "$undefined" ]; then
    echo "calls that reach the real kernel, or are not known here: $undefined"
    exit 1
fi
