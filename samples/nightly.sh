#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# nightly - all hosts have the same crontab, and each night the job runs on one of them
#
#   nightly [--workers N] [--rounds N] [--unsafe]
#
# N processes stand for hosts whose clocks differ, N rounds for nights. The job is done before the last clock strikes, so a
# lock for as long as it runs is not enough: --hold-at-least keeps the name taken for longer than clocks differ. With
# --unsafe the line of the crontab is without `latchkey run`. The command latchkey has to be in the PATH. The crontab is
#
#   LATCHKEY_URL=redis://locks.example.com
#   0 3 * * * /usr/local/bin/latchkey run -q -n --hold-at-least 30s nightly -- /usr/local/bin/nightly
set -uo pipefail

hosts=3 nights=3 unsafe=''
while (($# > 0)); do
    case $1 in
    --workers) hosts=$2 && shift ;;
    --rounds) nights=$2 && shift ;;
    --unsafe) unsafe=yes ;;
    *) sed -n '3,$ { /^#/!q; s/^# \{0,1\}//; p }' "$0" && exit ;;
    esac
    shift
done
[[ $unsafe ]] || command -v latchkey >/dev/null || { echo "nightly: latchkey is not in the PATH" >&2 && exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=samples:nightly:$$:$RANDOM

# That line of the crontab: a host that comes too late skips it, and that is no failure.
cron() { # <host> <night>
    local job=(sh -c 'echo "on host $1" >>"$2"' sh "$1" "$work/$2")
    if [[ $unsafe ]]; then
        "${job[@]}"
    else
        latchkey run -q -n --hold-at-least 30s "$name:$2" -- "${job[@]}"
    fi
}

once=0 failed=0
for ((night = 1; night <= nights; night++)); do
    pids=()
    for ((host = 1; host <= hosts; host++)); do
        { sleep "0.$((RANDOM % 3))" && cron $host $night; } &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || failed=$((failed + 1))
    done
    echo "night $night: $(paste -sd, "$work/$night" 2>/dev/null)"
    [[ $(wc -l <"$work/$night") != 1 ]] || once=$((once + 1))
done

verdict=BROKEN
((once < nights || failed > 0)) || verdict=held
echo "invariant: each night the job runs on one host: $verdict ($once of $nights nights, $failed of $((hosts * nights)) calls failed)"
[[ $verdict = held ]]
