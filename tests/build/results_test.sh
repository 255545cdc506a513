#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/results.py: which failures get a second try, and how both tries are counted.
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

failure='a_test.c:5: error: Failure!'
{
    echo '<testsuite>'
    testcase lock/good run ''
    testcase lock/late fail "$failure"
    testcase lock/wrong fail "$failure"
    testcase lock/race fail "$failure WARNING: ThreadSanitizer: data race"
    testcase lock/freed fail "$failure ERROR: AddressSanitizer: heap-use-after-free"
    testcase lock/undefined fail "$failure a.c:1:2: runtime error: signed integer overflow"
    testcase lock/assert fail 'lock.c:9: lk__f: Assertion `held'"'"' failed.'
    testcase lock/died fail ''
    echo '<testcase name="lock/absent" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
    echo '<testcase name="lock/unbuilt" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>'
    testcase build/bench fail 'the answer got lost'
    testcase build/fast fail 'WARNING: ThreadSanitizer: data race'
    testcase samples/counter fail $'20 of 20 rounds\ninvariant: no increment is lost: BROKEN (counted 19 of 20)'
    testcase samples/died fail '10 of 20 rounds'
    testcase models/queue fail 'error: no such state'
    echo '</testsuite>'
} >first.xml
{
    echo '<testsuite>'
    testcase lock/late run ''
    testcase lock/wrong fail "$failure again"
    echo '</testsuite>'
} >second.xml

says 'lock/late\nlock/wrong\nbuild/bench\nsamples/counter\n' again first.xml
says '1 13 1 0\n' count first.xml
says '1 12 1 1\n' count first.xml second.xml
"$python" "$results" failures dev first.xml second.xml >failures
grep -qx -- '--- dev: lock/late, after 2 s, but passed twice alone' failures
grep -qx -- '--- dev: lock/wrong, after 2 s' failures
grep -qF 'data race' failures
! grep -qE 'lock/(good|absent)' failures
