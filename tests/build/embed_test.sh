#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# embed_lua.cmake: what it embeds is what Redis will hash, byte for byte, and mistakes stop the build.
#   embed_test.sh <cmake> <embed_lua.cmake> <C compiler>
set -euo pipefail
cmake=$1 embed=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p demo redis out/demo

embed() { # <script.lua>
    "$cmake" -DMODULE=demo "-DSCRIPTS=$PWD/demo/$1" "-DPARTS=$PWD/demo/token.lua;$PWD/demo/queue.lua" \
        -DOUTPUT="$PWD/out/demo" -P "$embed"
}

# Embedding the script on stdin must fail and say so.
refuses() { # <part of the message>
    cat >demo/bad.lua
    if embed bad.lua >message 2>&1; then
        echo "accepted, though it should say '$1':"
        cat demo/bad.lua
        exit 1
    fi
    # cmake wraps its messages
    tr -s ' \n' ' ' <message | grep -qF -- "$1" || { echo "does not say '$1':"; cat message; exit 1; }
}

printf -- '-- token.lua - a part\n\nlocal function token()\n    return 7\nend\n' >demo/token.lua
printf 'local function queue(key)\n\treturn { key, token() } -- kept\nend\n' >demo/queue.lua
cat >demo/take.lua <<'END'
-- take.lua - letters that C, CMake and lists could stumble over
-- uses: token queue
--
-- KEYS[1]  string
-- KEYS[2]  hash
local t = { "a;b", 'c\\d\n', "??/", '%d $x ${y} @z@ [', "é" }

    -- an indented comment with KEYS[9]
    if t[#t] ~= KEYS[1] then
        return queue(KEYS[2])
    end
return t
END
sed -i 's/ then$/ then \t /' demo/take.lua # blanks at an end, which editors would take out here
cat >expected <<'END'
local function token()
return 7
end
local function queue(key)
return { key, token() } -- kept
end
local t = { "a;b", 'c\\d\n', "??/", '%d $x ${y} @z@ [', "é" }
if t[#t] ~= KEYS[1] then
return queue(KEYS[2])
end
return t
END
cat >redis/redis.h <<'END'
#include <stddef.h>
struct lk__script { const char *name; const char *source; size_t length; const char *sha1; int keys; };
END
cat >main.c <<'END'
#include "redis/redis.h"
#include "demo/scripts.h"
#include <stdio.h>
int main(void)
{
    const struct lk__script *s = &lk__lua_demo_take;
    fprintf(stderr, "%s %d %s\n", s->name, s->keys, s->sha1);
    return fwrite(s->source, 1, s->length, stdout) == s->length && s->source[s->length] == 0 ? 0 : 1;
}
END

embed take.lua
"$cc" -std=c11 -Wall -Werror -I. -Iout main.c out/demo/scripts.c -o main
./main >embedded 2>said
diff expected <(cat embedded; echo)
read -r sum _ < <(sha1sum embedded)
[[ $(<said) = "demo/take 2 $sum" ]] || { cat said; exit 1; }

# The commands of all scripts of a module, those of their parts as well, each once and in order.
printf -- "-- set.lua\n-- uses: get\nredis.call('SET', 'a', 1)\nredis.pcall('GET', 'a')\nreturn get()\n" >demo/set.lua
printf -- "local function get()\n    return redis.call('GET', 'b') or redis.call('DEL', 'b')\nend\n" >demo/get.lua
"$cmake" -DMODULE=demo "-DSCRIPTS=$PWD/demo/set.lua;$PWD/demo/take.lua" \
    "-DPARTS=$PWD/demo/token.lua;$PWD/demo/queue.lua;$PWD/demo/get.lua" -DOUTPUT="$PWD/out/demo" -P "$embed"
grep -qF 'lk__lua_demo_commands[] = "del get set";' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }

# A script without keys is fine.
printf -- '-- ping.lua\nreturn 1\n' >demo/ping.lua
embed ping.lua

refuses 'documents 1 KEYS, but the highest used is KEYS[2]' <<<$'-- KEYS[1]  a\nreturn KEYS[2]'
refuses 'documents 2 KEYS, but the highest used is KEYS[1]' <<<$'-- KEYS[1]  a\n-- KEYS[2]  b\nreturn KEYS[1]'
refuses 'documents 0 KEYS, but the highest used is KEYS[1]' <<<$'return KEYS[1]\n-- KEYS[1]  too late'
refuses 'documents KEYS[3], but KEYS[2] is missing' <<<$'-- KEYS[1]  a\n-- KEYS[3]  b\nreturn KEYS[3]'
refuses 'uses nothing: there are 0 parts of this name' <<<$'-- uses: token nothing\nreturn 1'
refuses 'no long brackets' <<<$'--[[ several\nlines ]]\nreturn 1'
refuses 'no strings over several lines' <<<$'return "a\\\nb"'
refuses 'has to stand in the call' <<<$'local name = "GET"\nreturn redis.call(name, "a")'
refuses 'has to stand in the call' <<<$'return redis.pcall("GET", "a")'
printf 'return KEYS[1]\n' >demo/token.lua
refuses 'it does not use KEYS' <<<$'-- uses: token\n-- KEYS[1]  a\nreturn KEYS[1]'
