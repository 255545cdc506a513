#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What pages name and lead to exists, and docs/architecture.md has each thread, and each lock in its order.
#   docs_test.sh <source folder>
set -euo pipefail
tree=$1

# Says each file that a page names, or leads to, and that there is not. Headers and modules may be named as they are
# included. What the build makes, and examples of what contributors write, exist nowhere.
lost_files() { # <tree>
    local page file place
    while IFS=: read -r page file; do
        for place in . src include docs "${page%/*}"; do
            [[ ! -e $1/$place/$file ]] || continue 2
        done
        [[ $file == */scripts.h || $file == tests/mutants/m42-* ]] || echo "$page: there is no $file"
    done < <(cd "$1" && for page in *.md docs/*.md tests/models/*.md; do
        sed -E 's|https?://[^ )>]*||g' "$page" |
            grep -oE '[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+\.(c|h|lua|py|md|sh|cmake|patch)\b|\]\([^)#]+' |
            sed "s/^](//; s|^|$page:|" | sort -u
    done)
}
lost=$(lost_files "$tree")
[[ -z $lost ]] || { echo "$lost"; exit 1; }

ranks() { # as the code has them, and as the page has them
    sed -n '/^enum lk__mu_rank/,/^}/s/^ *LK__MU_\([A-Z_]*\).*/\1/p' "$tree/src/base/mu.h" | grep -v '^RANKS$' | tr A-Z a-z
}
told_ranks() {
    sed -n '/^## The order of locks/,/^## /s/^| `\([a-z_]*\)` .*/\1/p' "$tree/docs/architecture.md"
}
(($(ranks | wc -l) > 10))
diff <(ranks) <(told_ranks) || { echo 'docs/architecture.md: the order of locks is not that of src/base/mu.h'; exit 1; }

threads() {
    grep -rhoE 'lk__thread_(start|spawn)\([^;]*"lk-[a-z]+"' "$tree/src" | grep -oE 'lk-[a-z]+' | sort -u
}
told_threads() {
    sed -n '/^## Threads/,/^## /s/^| `\(lk-[a-z]*\)` .*/\1/p' "$tree/docs/architecture.md" | sort
}
(($(threads | wc -l) > 4))
diff <(threads) <(told_threads) || { echo 'docs/architecture.md: these are not the threads of src'; exit 1; }

# From here on a copy of what is read.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

mkdir -p "$copy/docs" "$copy/src/lock" "$copy/tests/models"
touch "$copy/src/lock/lock.c"
echo '[all](docs/page.md#top): `src/lock/lock.c`, `lock/lock.c`, `lock/scripts.h` https://a/b.c (https://c/d.md)' >"$copy/README.md"
echo '[back](../README.md), [gone](gone.md) and `src/lock/unlock.c`' >"$copy/docs/page.md"
echo '`lock/attr.c`' >"$copy/tests/models/README.md"
expected='docs/page.md: there is no gone.md
docs/page.md: there is no src/lock/unlock.c
tests/models/README.md: there is no lock/attr.c'
[[ $(lost_files "$copy") == "$expected" ]] || { echo "this test finds of lost files:"; lost_files "$copy"; exit 1; }
