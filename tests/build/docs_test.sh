#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docs/ says of the scripts what their headers say, and a header, command or verdict that changes is noticed.
# What pages name and lead to exists, and docs/architecture.md has each thread, and each lock in its order.
#   docs_test.sh <python3> <source folder>
set -euo pipefail
python=$1 tree=$2
docs() { "$python" "$tree/cmake/script_docs.py" "$@"; } # write|check <source folder>

docs check "$tree" # if this fails: scripts/docs

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
anew() {
    rm -rf "${copy:?}"/*
    (cd "$tree" && tar -c docs/keys.md docs/security.md src/redis/vocabulary src/*/CMakeLists.txt src/*/*.lua) |
        tar -x -C "$copy"
}

fails() { # <part of the message>
    if docs check "$copy" >"$copy/message" 2>&1; then
        echo "nothing is said, though it should be: $1"
        exit 1
    fi
    grep -qF -- "$1" "$copy/message" || { echo "does not say '$1':"; cat "$copy/message"; exit 1; }
}

# Change a file of the copy by sed.
change() { # <file> <sed expression>
    cp "$copy/$1" "$copy/before"
    sed -i "$2" "$copy/$1"
    ! cmp -s "$copy/$1" "$copy/before" || { echo "$1: '$2' changes nothing"; exit 1; }
}

# Each page is to be written anew, with these texts.
shows() { # <page> <texts>
    local text
    fails "$1 is not what the headers of the scripts say. To write it anew: scripts/docs"
    for text in "${@:2}"; do
        grep -qF -- "$text" <(grep '^+' "$copy/message") || { echo "$1 would not say '$text'"; exit 1; }
    done
}

anew
change src/lock/check.lua 's/ - does a hold stand?/ - does it | stand?/'
change src/lock/nest.lua 's/^-- resend: .*/-- resend:   harmless: so it is/'
change src/lock/nest.lua 's/\<holds\>/level/g'
change src/redis/vocabulary 's/^verdict BUSY  *3 .*/verdict BUSY 33 too late/'
change src/redis/vocabulary 's/own number in the queue/ticket/'
change src/lock/check.lua "s/'HEXISTS'/'HSTRLEN'/"
change src/latch/look.lua "s/^return /redis.call('STRLEN', count)\nreturn /"
shows docs/keys.md 'does it \| stand?' 'harmless: so it is |' '`level`, `id` text' '| `BUSY` | 33 | too late |' ticket
shows docs/security.md '+hrandfield +hset +hstrlen' '+rename +strlen +zcount +zmscore +zrangebyscore +zremrangebyscore` | not for mutexes:'

anew
change src/lock/nest.lua 's/  absolute$/  not relative/'
change docs/keys.md 's/^| `lock\/check`.*/| by hand |/'
change docs/security.md 's/+zadd //'
shows docs/keys.md '`holds` (not relative)' 'does a hold stand?'
shows docs/security.md '+zadd +zcard'

# Written anew, the page with the rule is what it was.
docs write "$copy" >/dev/null
cmp "$copy/docs/security.md" "$tree/docs/security.md"
docs check "$copy"

# Keys of a type that the page's own tables do not have, and a page that has no place for what is written.
anew
sed -i 's/\<once hash\>/once string/' "$copy"/src/latch/*.lua
fails 'Keys of a countdown latch: no script has keys of these types'
anew
sed -i '/scripts\/docs: verdicts/d' "$copy/docs/keys.md"
fails 'there should be one'
anew
sed -i 's/^-- check.lua - /-- /' "$copy/src/lock/check.lua"
fails 'the header does not begin with'
