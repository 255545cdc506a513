# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scripts of this folder share. Sourced after `set -uo pipefail`, in the top folder afterwards.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# One line a step, with the time since the start.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

# Prints the part of a script's first comment that is meant for --help.
usage() { sed -n '/^# Usage:/,/^[^#]/s/^#\( \|$\)//p' "$0"; }

# --- what a step leaves behind -----------------------------------------------------------------

running='' # the step that runs, leader of a process group

# Run a step in a process group of its own, wait for it, and end what it may have left running.
run() {
    local code=0
    set -m
    "$@" </dev/null &
    running=$!
    set +m
    wait "$running" || code=$?
    end_running
    return "$code"
}

end_running() {
    [[ -z $running ]] || kill -- "-$running" 2>/dev/null
    running=''
    [[ -z $counter ]] || { kill "$counter" && wait "$counter"; } 2>/dev/null
    counter=''
}

# Run a step with its output in a file, and show how far it is: on one line of a terminal, else twice a minute.
counter='' # the process that shows it
run_counted() { # <what> <file> <command>
    : >"$2"
    count_steps "$1" "$2" &
    counter=$!
    run "${@:3}" >"$2" 2>&1
}

# Ninja writes `[12/345] ...`, ctest `12/345 Test ... ***Failed`.
count_steps() { # <what> <file of its output>
    local steps failures line='%s\n' pause=30 shown=''
    [[ ! -t 1 ]] || line='\r%s\e[K' pause=1
    trap 'kill $!; [[ -z $shown || $pause != 1 ]] || echo; exit' TERM
    while sleep "$pause" & wait $!; do
        steps=$(sed -nE 's,^ *\[?([0-9]+/[0-9]+)(\] | Test ).*,\1,p' "$2" | tail -n 1)
        failures=$(grep -cE 'Test +#.*\*\*\*[^S]' "$2") # not ***Skipped
        [[ -n $steps ]] || continue
        shown=yes
        # shellcheck disable=SC2059
        printf "$line" "$(say "$1: $steps$( ((failures == 0)) || echo ", $failures failed")")"
    done
}

# Every end of a script, Ctrl-C included, comes through here; a script may define `cleanup` anew.
cleanup() { :; }
at_end() {
    trap '' INT TERM HUP
    end_running
    allow_services
    cleanup
}
trap at_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- packages --------------------------------------------------------------------------------------

# Prints the Debian packages that are lacking here; each line: package, how to see that it is there. Those
# with a + are for scripts that ask for them by name.
missing_packages() { # [packages]
    local package check
    while read -r package check; do
        [[ $package != +* || " $* " == *" ${package#+} "* ]] || continue
        bash -c "$check" >/dev/null 2>&1 || echo "${package#+}"
    done <<'END'
gcc              command -v gcc
+g++             command -v g++
libc6-dev        echo '#include <stdio.h>' | cpp
cmake            command -v cmake
ninja-build      command -v ninja
pkg-config       command -v pkg-config
python3          command -v python3
libhiredis-dev   pkg-config --exists hiredis
libjansson-dev   pkg-config --exists jansson
libssl-dev       pkg-config --exists openssl
redis-server     command -v redis-server && command -v redis-cli
+libcmocka-dev   pkg-config --exists cmocka
+make            command -v make
+procps          command -v ps
+groff-base      command -v groff
+spin            command -v spin
+tcc             command -v tcc
+patch           command -v patch
+gcovr           command -v gcovr
+gnuplot-nox     command -v gnuplot
+valgrind        command -v valgrind
+python3-redis   /usr/bin/python3 -c 'import redis'
+default-jdk-headless command -v javac
+nodejs          command -v node
+npm             command -v npm
+maven           command -v mvn
+clang           command -v clang
+libclang-rt-dev echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -fsanitize=fuzzer,address -xc - -o /dev/null
END
}

# shellcheck disable=SC2034 # for the scripts
test_packages=(g++ make libcmocka-dev procps groff-base) # what the tests need beside the library and the samples

as_root=() # what makes a command root's
((EUID == 0)) || as_root=(sudo)

# Install what is missing. Exits 77 where only the user can do that.
need_packages() { # [packages beside those that building needs]
    local packages log
    mapfile -t packages < <(missing_packages "$@")
    ((${#packages[@]})) || return 0
    if ! command -v apt-get >/dev/null || ! command -v "${as_root[@]-env}" >/dev/null; then
        echo "Please install what these Debian packages hold, then start this again: ${packages[*]}"
        exit 77
    fi

    say "Installing ${packages[*]}"
    forbid_services
    if ! log=$({
        "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y --no-install-recommends "${packages[@]}"
    } 2>&1); then
        echo "$log"
        exit 1
    fi
    allow_services
}

# A policy that says no keeps apt-get from starting the redis-server it installs. One that is there stays.
policy=/usr/sbin/policy-rc.d
our_policy=''
forbid_services() {
    [[ ! -e $policy ]] || return 0
    our_policy=$policy
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod +x "$policy"
}
allow_services() {
    [[ -z $our_policy ]] || "${as_root[@]}" rm -f "$our_policy"
    our_policy=''
}

# --- building -------------------------------------------------------------------------------------

# Configure and build a preset; its output is shown only when it fails.
build() { # <preset> [preset to build]
    local log
    mkdir -p "build/$1"
    log=build/$1/build.log
    say "Building $1"
    run_counted "Building $1" "$log" bash -c "cmake --preset $1 && cmake --build --preset ${2-$1}" && return
    cat "$log"
    say "Building $1 failed"
    return 1
}

# In front of a command that takes what others leave of the processors.
idly=()
if chrt --idle 0 true 2>/dev/null; then
    # shellcheck disable=SC2034 # for the scripts
    idly=(chrt --idle 0)
fi

# --- the real Redisson --------------------------------------------------------------------------

redisson_version=3.42.0
redisson_sha256=70a4bb2fe03ec9f5fa562f862afbaf0aa6fcda9da749a87e2798a28714448733
redisson_jar=$PWD/.cache/redisson-all.jar # git ignores that folder; tests/support/java.c looks there

is_redisson() { [[ -e $1 ]] && sha256sum --check --status <<<"$redisson_sha256  $1"; }

# Have the jar there, by Maven. It is put in its place when it is known to be the one that is meant.
fetch_redisson() {
    local place log code=1
    ! is_redisson "$redisson_jar" || return 0
    mkdir -p "${redisson_jar%/*}" && place=$(mktemp -d -p "${redisson_jar%/*}") || return 1
    log=$place/log
    say "Fetching Redisson $redisson_version"
    if ! run mvn --batch-mode dependency:copy "-Dartifact=org.redisson:redisson-all:$redisson_version" \
        "-DoutputDirectory=$place" >"$log" 2>&1; then
        cat "$log"
    elif ! is_redisson "$place/redisson-all-$redisson_version.jar"; then
        say "What came is not the Redisson that is pinned"
    else
        mv "$place/redisson-all-$redisson_version.jar" "$redisson_jar" && code=0
    fi
    rm -rf "$place"
    return "$code"
}

# --- a server of one's own -------------------------------------------------------------------------

work='' server='' socket=''

# Start a Redis server in a folder of its own: nothing kept, and no port but one that is given. Sets work, server and
# socket.
begin_server() { # [port on 127.0.0.1]
    local tries
    work=$(mktemp -d) || return 1
    cleanup() { end_server; }
    say "Starting a Redis server"
    socket=$work/redis.sock
    redis-server --port "${1-0}" --bind 127.0.0.1 --unixsocket "$socket" --dir "$work" --save '' --appendonly no --daemonize no \
        --maxmemory-policy noeviction </dev/null >"$work/redis.log" 2>&1 &
    server=$!
    for ((tries = 100; tries > 0; tries--)); do
        [[ $(redis-cli -s "$socket" ping 2>/dev/null) != PONG ]] || return 0
        sleep 0.1
    done
    cat "$work/redis.log"
    say "The server does not start"
    return 1
}

end_server() {
    if [[ -n $server ]]; then
        kill "$server" 2>/dev/null
        wait "$server"
    fi
    rm -rf "$work"
}
