#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The shared library exports what the checked-in list says and nothing else; all of it is public by name.
#   symbols_test.sh <nm> <library> <list>
set -euo pipefail
export LC_ALL=C
nm=$1 library=$2 list=$3

# Type A is the version node itself; @@LATCHKEY_0.1 follows each name.
exported=$("$nm" -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)

failed=0
if strangers=$(grep -vE '^lk_[^_]' <<<"$exported"); then
    printf 'Exported, but not a public name:\n%s\n' "$strangers"
    failed=1
fi
if ! diff --label "$list" --label "$library" -u "$list" - <<<"$exported"; then
    echo
    echo "The exported symbols changed. A symbol that went breaks programs; if the change is meant, write it down:"
    echo "  $nm -D --defined-only $library | awk '\$2 != \"A\" { sub(/@.*/, \"\", \$3); print \$3 }' | LC_ALL=C sort > $list"
    failed=1
fi
if "$nm" "$library" | grep -q ' lk__noise$'; then
    echo "The delays of the build option LATCHKEY_NOISE are in the library of everybody"
    failed=1
fi
echo "$(wc -l <<<"$exported") symbols"
exit $failed
