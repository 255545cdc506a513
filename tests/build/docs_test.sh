#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docs/ says of the scripts what their headers say, and a header, command or verdict that changes is noticed.
#   docs_test.sh <python3> <source folder>
set -euo pipefail
python=$1 tree=$2
docs() { "$python" "$tree/cmake/script_docs.py" "$@"; } # write|check <source folder>

docs check "$tree" # if this fails: scripts/docs

# From here on a copy of what is read.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
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

# A change by sed after which a page is to have that text.
shows() { # <file> <sed expression> <page> <text>
    anew
    sed -i "$2" "$copy/$1"
    ! cmp -s "$copy/$1" "$tree/$1" || { echo "$1: '$2' changes nothing"; exit 1; }
    fails "$3 is not what the headers of the scripts say. To write it anew: scripts/docs"
    grep -qF -- "$4" <(grep '^+' "$copy/message") || { echo "$3 would not say '$4'"; exit 1; }
}

shows src/lock/check.lua 's/ - does a hold stand?/ - does it | stand?/' docs/keys.md 'does it \| stand?'
shows src/lock/nest.lua 's/^-- resend: .*/-- resend:   harmless: so it is/' docs/keys.md 'harmless: so it is |'
shows src/lock/nest.lua 's/\<holds\>/level/g' docs/keys.md '`level`, `id` text'
shows src/lock/nest.lua 's/  absolute$/  not relative/' docs/keys.md '`holds` (not relative)'
shows src/redis/vocabulary 's/^verdict BUSY  *3 .*/verdict BUSY 33 too late/' docs/keys.md '| `BUSY` | 33 | too late |'
shows src/redis/vocabulary 's/own number in the queue/ticket/' docs/keys.md 'ticket'
shows src/lock/check.lua "s/'HEXISTS'/'HSTRLEN'/" docs/security.md '+hrandfield +hset +hstrlen'
shows src/latch/look.lua "s/^return /redis.call('STRLEN', count)\nreturn /" docs/security.md '+incrby +strlen +zcard +zremrangebyscore` | not for mutexes:'
shows docs/keys.md 's/^| `lock\/check`.*/| by hand |/' docs/keys.md 'does a hold stand?'
shows docs/security.md 's/+zadd //' docs/security.md '+zadd +zcard'

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
