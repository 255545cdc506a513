#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A sample comes to its last line and says whether its invariant held; without the primitive it does not. It leaves no files.
#   sample_test.sh <held|BROKEN> <program> [arguments]
set -uo pipefail
expected=$1 program=$2
shift 2
server=${LATCHKEY_TEST_SERVER:-redis-server}
command -v "$server" >/dev/null && command -v redis-cli >/dev/null || exit 77

work=$(mktemp -d)
pid=''
at_end() {
    [[ -z $pid ]] || { kill "$pid" && wait "$pid"; } 2>/dev/null
    rm -rf "$work"
}
trap at_end EXIT
trap 'exit 143' INT TERM HUP

"$server" --port 0 --unixsocket "$work/redis.sock" --dir "$work" --save '' --appendonly no --daemonize no \
    --maxmemory-policy noeviction </dev/null >"$work/log" 2>&1 &
pid=$!
for ((tries = 100; tries > 0; tries--)); do
    [[ $(redis-cli -s "$work/redis.sock" ping 2>/dev/null) != PONG ]] || break
    sleep 0.1
done

mkdir "$work/tmp"
# A busy machine has time to connect. No longer command_timeout: a claim of who was killed would last longer, too.
export LATCHKEY_URL="unix://$work/redis.sock?connect_timeout=20s" TMPDIR=$work/tmp
code=0 wanted=0
if [[ $expected = BROKEN ]]; then
    wanted=1
    set -- "$@" --unsafe
fi
"$program" "$@" >"$work/out" || code=$?
cat "$work/out"
left=$(ls -A "$TMPDIR")
[[ -z $left ]] || { echo "it left $left"; exit 1; }
[[ $code = "$wanted" && $(tail -n 1 "$work/out") =~ ^invariant:\ .*:\ $expected\ \( ]]
