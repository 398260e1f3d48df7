# SPDX-License-Identifier: Apache-2.0
# bash completion for ringbusctl. Commands and options are asked of the program itself;
# paths of the running daemon, which answers in a millisecond or is not there.
_ringbusctl_members() { # NAME of a text member, on standard input: objects of help --json
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

_ringbusctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]}
    local command=${COMP_WORDS[1]} socket=() i
    COMPREPLY=()
    if ((COMP_CWORD == 1)) || [[ $command == help && COMP_CWORD -eq 2 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$program" help --json 2>/dev/null | _ringbusctl_members command)" -- "$cur")
        return
    fi
    case $prev in
    --socket)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --key)
        [[ $command == token ]] && mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --timeout | --interval | --count | --subject | --target | --ttl | --seconds | --size | --cpus | --path | --tag | --method | --labels | --set | --idc | --state | --tags | --expect | --why | --revision) return ;;
    esac
    if [[ $cur == -* ]]; then
        local options
        options=$("$program" help "$command" --json 2>/dev/null | sed -n 's/.*"options":\[\([^]]*\)\].*/\1/p' | tr -d '"' | tr ',' ' ')
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        return
    fi
    for ((i = 2; i < COMP_CWORD - 1; i++)); do
        [[ ${COMP_WORDS[i]} == --socket ]] && socket=(--socket "${COMP_WORDS[i + 1]}")
    done
    case $command in
    check | apply | diff) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    ls | metrics | deps | alarms | show | explain | describe | watch | send | recv | call | ping | drain | undrain | unshield | get | create | set | rm | isolate | stage | weight | move | limit | mock)
        mapfile -t COMPREPLY < <(compgen -W "$("$program" ls --json --timeout 500ms "${socket[@]}" 2>/dev/null | _ringbusctl_members path)" -- "$cur")
        ;;
    routes | route)
        mapfile -t COMPREPLY < <(compgen -W "$("$program" hosts --json --timeout 500ms "${socket[@]}" 2>/dev/null | _ringbusctl_members host)" -- "$cur")
        ;;
    bridge) mapfile -t COMPREPLY < <(compgen -W "status confirm" -- "$cur") ;;
    esac
}
complete -F _ringbusctl ringbusctl
