#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docs/faults.md names tests that exist, and each test of tests/faults and tests/failing.
#   faults_docs_test.sh <source folder>
set -euo pipefail
cd "$1"
bad=0
complain() { echo "$*"; bad=1; }

# Names in backticks that have a folder of tests in front.
# shellcheck disable=SC2016
mapfile -t named < <(grep -o '`[a-z]*/[a-z_]*`' docs/faults.md | tr -d '`' | sort -u)
((${#named[@]} > 50)) || complain "only ${#named[@]} tests are named"
for name in "${named[@]}"; do
    case $name in
    tests/* | scripts/mutants | scripts/test | scripts/fuzz | soak/short | soak/sentinels | soak/sentinels_long | soak/acknowledged | soak/cluster | soak/cluster_long) continue ;;
    esac
    [[ -e tests/${name}_test.c ]] || complain "docs/faults.md: there is no test $name"
done

for source in tests/faults/*_test.c tests/failing/*_test.c; do
    name=${source#tests/} name=${name%_test.c}
    [[ $name == faults/calm || " ${named[*]} " == *" $name "* ]] || complain "docs/faults.md does not name $name"
done
exit "$bad"
