# SPDX-License-Identifier: MIT
"""What scripts/test reads of the results that ctest wrote down.

    results.py count <results>                prints: passed failed skipped
    results.py failures <preset> <results>    prints the end of what each failed test said
"""
import sys
import xml.etree.ElementTree as xml

LAST_LINES = 30


def cases(path):
    return list(xml.parse(path).iter("testcase"))


def is_skipped(case):
    skipped = case.find("skipped[@message]")
    return skipped is not None and skipped.get("message").startswith("SKIP_")


def has_failed(case):
    """One that could not run counts as failed, not as skipped."""
    return case.get("status") in ("fail", "notrun", "disabled") and not is_skipped(case)


def count(path):
    skipped = sum(map(is_skipped, cases(path)))
    failed = sum(map(has_failed, cases(path)))
    print(len(cases(path)) - failed - skipped, failed, skipped)


def failures(preset, path):
    for case in filter(has_failed, cases(path)):
        print(f"--- {preset}: {case.get('name')}, after {float(case.get('time')):.0f} s")
        print(*case.findtext("system-out", "").splitlines()[-LAST_LINES:], sep="\n")


if __name__ == "__main__":
    {"count": count, "failures": failures}[sys.argv[1]](*sys.argv[2:])
