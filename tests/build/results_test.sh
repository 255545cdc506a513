#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/results.py: how tests are counted, and what is told of those that failed.
#   results_test.sh <python3> <source folder>
set -euo pipefail
python=$1 results=$2/scripts/results.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

testcase() { # <name> <status> <output>
    printf '<testcase name="%s" time="1.5" status="%s"><system-out>%s</system-out></testcase>\n' "$@"
}

says() { # <expected> <arguments>...
    local expected=$1
    shift
    diff <(printf '%b' "$expected") <("$python" "$results" "$@") || { echo "not as expected: $*"; exit 1; }
}

{
    echo '<testsuite>'
    testcase lock/good run ''
    testcase lock/race fail 'WARNING: ThreadSanitizer: data race'
    testcase lock/died fail ''
    echo '<testcase name="lock/absent" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
    echo '<testcase name="lock/unbuilt" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>'
    testcase lock/long fail "$(seq 100)"
    echo '</testsuite>'
} >results.xml

says '1 4 1\n' count results.xml
"$python" "$results" failures dev results.xml >failures
grep -qx -- '--- dev: lock/race, after 2 s' failures
grep -qx -- '--- dev: lock/unbuilt, after 0 s' failures
grep -qF 'data race' failures
[[ $(sed -n '/lock.long/,$p' failures) == "--- dev: lock/long, after 2 s"$'\n'"$(seq 71 100)" ]]
! grep -qE 'lock/(good|absent)' failures
