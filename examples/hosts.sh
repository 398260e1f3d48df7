# SPDX-License-Identifier: Apache-2.0
# For what shows two hosts on one machine: each has a daemon, a bridge and certificates of its own,
# in a network namespace of its own where that is permitted, else on loopback. Sourced after bus.sh.
#
#   hosts_start             sets up alpha and beta; RINGBUS_SOCKET is alpha's
#   on beta start NAME ...  the same as start, there
#   hosts_mode              "namespaces" or "loopback"
hosts_mode=loopback
hosts_space=""
hosts_pids=""
hosts_export="/Demo/**"
hosts_more="" # of the section bridge: lines that begin with two spaces

# Whether network namespaces can be made here, entered, and removed.
hosts_may_split() {
    [ "$(id -u)" = 0 ] && command -v ip >/dev/null && ip netns add "rb$$.t" 2>/dev/null || return 1
    entered=0
    ip netns exec "rb$$.t" true 2>/dev/null || entered=1
    ip netns del "rb$$.t" && return $entered
}

hosts_split() {
    hosts_space=rb$$
    for host in alpha beta; do
        ip netns add "$hosts_space.$host"
        ip -n "$hosts_space.$host" link set lo up
    done
    ip -n "$hosts_space.alpha" link add eth0 type veth peer name eth0 netns "$hosts_space.beta"
    ip -n "$hosts_space.alpha" addr add 10.117.0.1/30 dev eth0
    ip -n "$hosts_space.beta" addr add 10.117.0.2/30 dev eth0
    for host in alpha beta; do ip -n "$hosts_space.$host" link set eth0 up; done
    hosts_mode=namespaces
}

hosts_cleanup() {
    code=$?
    for pid in $hosts_pids; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in $hosts_pids; do wait "$pid" 2>/dev/null || true; done
    if [ -n "$hosts_space" ]; then
        for host in alpha beta; do ip netns del "$hosts_space.$host" 2>/dev/null || true; done
    fi
    set +e
    (exit "$code") # what bus_cleanup finds, and ends with
    bus_cleanup
}

# An authority and a certificate for each host, good for a day.
hosts_certify() {
    curve="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    # shellcheck disable=SC2086 # options
    openssl req -x509 $curve -days 1 -subj "/CN=ringbus demo" -keyout "$work/ca.key" -out "$work/ca.pem" 2>/dev/null
    for host in alpha beta; do
        # shellcheck disable=SC2086
        openssl req $curve -subj "/CN=$host" -addext "subjectAltName=DNS:$host" -keyout "$work/$host.key" \
            -out "$work/$host.csr" 2>/dev/null
        openssl x509 -req -in "$work/$host.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 1 \
            -copy_extensions copy -out "$work/$host.pem" 2>/dev/null
        chmod 600 "$work/$host.key"
    done
}

# hosts_configure HOST PEER LISTEN ADDRESS-OF-PEER: the configuration of the demo, and a bridge
hosts_configure() {
    cp "$top/configs/demo.yaml" "$work/$1.yaml"
    cat >>"$work/$1.yaml" <<YAML

bridge:
  host: $1
  listen: ["$3"]
  peers:
    - {host: $2, address: "$4"}
  certificate: $work/$1.pem
  key: $work/$1.key
  ca: $work/ca.pem
  export: ["$hosts_export"]
$hosts_more
YAML
}

# on HOST COMMAND...: with its bus, and in its network
on() {
    RINGBUS_SOCKET=$work/$1.sock
    hosts_within=""
    [ -z "$hosts_space" ] || hosts_within="ip netns exec $hosts_space.$1"
    shift
    "$@"
    RINGBUS_SOCKET=$work/alpha.sock
}

# hosts_wait FILE TEXT WHAT: until a log says so
hosts_wait() {
    tries=0
    until grep -qs "$2" "$1"; do
        tries=$((tries + 1))
        if [ $tries -gt 1000 ]; then
            echo "$3:" >&2
            cat "$1" >&2
            exit 1
        fi
        sleep 0.01
    done
}

hosts_daemon() { # hosts_daemon HOST: a daemon, which starts its bridge
    # shellcheck disable=SC2086 # a command and its arguments, or nothing
    $hosts_within "$build/daemon/ringbusd" --config "$work/$1.yaml" --socket "$RINGBUS_SOCKET" 2>"$work/$1.log" &
    hosts_pids="$hosts_pids $!"
    hosts_wait "$work/$1.log" ' event=ready ' "the daemon of $1 did not start"
}

hosts_start() {
    trap hosts_cleanup EXIT
    hosts_certify
    if hosts_may_split; then
        hosts_split
        hosts_configure alpha beta 10.117.0.1:7740 10.117.0.2:7740
        hosts_configure beta alpha 10.117.0.2:7740 10.117.0.1:7740
    else
        port=$((20000 + $$ % 20000))
        hosts_configure alpha beta "127.0.0.1:$port" "127.0.0.1:$((port + 1))"
        hosts_configure beta alpha "127.0.0.1:$((port + 1))" "127.0.0.1:$port"
    fi
    on alpha hosts_daemon alpha
    on beta hosts_daemon beta
    hosts_wait "$work/alpha.log" ' event=host_reachable host=beta' "alpha does not reach beta"
}
