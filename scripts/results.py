# SPDX-License-Identifier: MIT
"""What scripts/test reads of the results that ctest wrote down.

    results.py count <results> [<second try>]       prints: passed failed skipped unsteady
    results.py again <results>                      prints the names of those that may be tried again, a line each
    results.py failures <preset> <results> [<second try>]   prints the end of what each failed or unsteady test said

A test that failed among others, on a machine that had too much to do, and then passed twice alone is `unsteady`.
There is no second try for a test that a sanitizer, an assertion of the library or a signal ended, because a quiet machine
only hides the cause. Threads that a failed assertion left behind do not count. Samples assert their invariant. Tests of
build/ are scripts, which say in their own words what failed.
"""
import re
import sys
import xml.etree.ElementTree as xml

LAST_LINES = 30
ASSERTION = re.compile(r"error: Failure!|^invariant: ", re.M)  # as cmocka says it, and a sample
WORSE = re.compile(
    r"ERROR: AddressSanitizer|WARNING: ThreadSanitizer: (?!thread leak)|runtime error:|Assertion .* failed|Test failed with exception"
    r"|heap-use-after-free|double free|corrupted"
)


def cases(path):
    return list(xml.parse(path).iter("testcase"))


def is_skipped(case):
    skipped = case.find("skipped[@message]")
    return skipped is not None and skipped.get("message").startswith("SKIP_")


def has_failed(case):
    """One that could not run counts as failed, not as skipped."""
    return case.get("status") in ("fail", "notrun", "disabled") and not is_skipped(case)


def output(case):
    return case.findtext("system-out", "")


def may_try_again(case):
    told = case.get("name").startswith("build/") or ASSERTION.search(output(case))
    return has_failed(case) and told and not WORSE.search(output(case))


def passed_then(path):
    return {case.get("name") for case in cases(path) if case.get("status") == "run"} if path else set()


def count(path, again=None):
    steady = passed_then(again)
    skipped = sum(is_skipped(case) for case in cases(path))
    failed = [case.get("name") for case in cases(path) if has_failed(case)]
    unsteady = sum(name in steady for name in failed)
    print(len(cases(path)) - len(failed) - skipped, len(failed) - unsteady, skipped, unsteady)


def again(path):
    for case in cases(path):
        if may_try_again(case):
            print(case.get("name"))


def failures(preset, path, again=None):
    steady = passed_then(again)
    for case in filter(has_failed, cases(path)):
        then = ", but passed twice alone" if case.get("name") in steady else ""
        print(f"--- {preset}: {case.get('name')}, after {float(case.get('time')):.0f} s{then}")
        print(*output(case).splitlines()[-LAST_LINES:], sep="\n")


if __name__ == "__main__":
    {"count": count, "again": again, "failures": failures}[sys.argv[1]](*sys.argv[2:])
