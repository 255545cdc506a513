#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cmake/scripts.py: what it embeds is what Redis will hash, byte for byte; a typed header becomes a prologue in Lua and
# structs in C that fit each other; and mistakes stop the build, each with words that name it.
#   scripts_test.sh <python3> <source folder> <C compiler>
set -euo pipefail
python=$1 tree=$2 cc=$3
vocabulary=$tree/src/redis/vocabulary.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# A module is compiled once, where a program would be at each of a hundred calls.
export PYTHONPYCACHEPREFIX=$work/compiled PYTHONDONTWRITEBYTECODE=
make=("$python" -S -c 'import sys; sys.path.insert(0, sys.argv[1]); import scripts; sys.exit(scripts.main(sys.argv[2:]))' "$tree/cmake")
mkdir -p demo below parts out/demo out/below

embed() { # <script.lua>...
    "${make[@]}" demo "$vocabulary" out/demo --scripts "${@/#/demo/}" --parts parts/*.lua --below below/*.lua
}

# Embedding the script on stdin must fail and say so.
refuses() { # <part of the message>
    cat >demo/bad.lua
    if embed bad.lua >message 2>&1; then
        echo "accepted, though it should say '$1':"
        cat demo/bad.lua
        exit 1
    fi
    grep -qF -- "$1" message || { echo "does not say '$1':"; cat message; exit 1; }
    [[ $(wc -l <message) = 1 ]] || { echo "more than a line:"; cat message; exit 1; }
}

differ() { # <expected> <found>
    diff "$1" "$2" || { echo "not as expected: $2"; exit 1; }
}

# The texts of a script, plain and sharded, and its SHA1s, as C has them.
flags=(-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-overlength-strings -Iout "-I$tree/src" "-I$tree/include")
text_of() { # <script>
    cat >main.c <<END
#include "redis/redis.h"
#include "demo/scripts.h"
#include <stdio.h>
int main(void)
{
    const struct lk__script *s = &lk__lua_demo_$1;
    static const char *const heads[] = { "local PUBLISH = 'PUBLISH'\\n", "local PUBLISH = 'SPUBLISH'\\n" };
    for (int kind = 0; kind < LK__PUBSUB_KINDS; kind++) {
        FILE *out = fopen(kind == 0 ? "plain" : "sharded", "w");
        size_t length = 0;
        fputs(s->publishes ? heads[kind] : "", out);
        for (int i = 0; s->pieces[i] != NULL; i++)
            length += (size_t)fprintf(out, "%s", s->pieces[i]);
        fclose(out);
        printf("%s %d %s %d\n", s->name, s->keys, s->sha1[kind], s->length == length);
    }
}
END
    "$cc" "${flags[@]}" -c main.c -o main.o
    "$cc" "${flags[@]}" -c out/demo/scripts.c -o scripts.o
    "$cc" "${flags[@]}" -c out/below/scripts.c -o below.o
    printf 'int lk__reply_number, lk__reply_text;\n' >stubs.c
    "$cc" main.o scripts.o below.o -x c stubs.c -o main
    ./main >said
    local file sum
    for file in plain sharded; do
        read -r sum _ < <(sha1sum $file)
        grep -q "^demo/$1 [0-9]* $sum 1\$" said || { echo "$file of $1 is not what its SHA1 says"; cat said; exit 1; }
    done
}

# --- pieces -----------------------------------------------------------------------------------------------------

cat >below/token.lua <<'END'
-- token.lua - a part

local function token()
    return 7
end

local function unused()
    return token()
end
END
cat >parts/queue.lua <<'END'
-- uses: token
local FIRST = 'first'
local SECOND = 'second'
-- what it does
local function queue(key)
	return { key, token(), FIRST } -- dropped
end
local function shout(to)
    return publish('äll:' .. to, table.concat({ 'a', 'b' }, 'publish(')) -- publish()
end
END
"${make[@]}" below "$vocabulary" out/below --scripts --parts below/*.lua --below

# What a statement needs of the parts stands before it, once; letters that C, CMake and lists could stumble over stay.
cat >demo/take.lua <<'END'
-- take.lua - takes
-- uses:     queue token                 a note
-- keys:     name hash, other zset
--           third hash
-- args:     limit ms, words text        goes on
--           ttl_ms digits
-- flags:    fair robust
-- sent:     id deadline_us again
-- verdicts: GRANTED GRANTED_OWNERDEAD token number
--           QUEUED n number, left_ms ms?,
--               holder text?
--           DONE list text...
--           BUSY LATE
-- resend:   harmless
local t = { name = name, limit = limit + 1, ["a;b"] = 'c\\d\n', x = "??/", y = '%d $x ${y} @z@ [', z = '-- no comment' }

    -- an indented comment with KEYS[9]
if fair and robust then 	 
    return answer(BUSY)
elseif again or third == other then
    return answer(QUEUED, t.limit, #queue({ 1, 2 }))
end
redis.call('PEXPIRE', name, ttl_ms)
if t.limit > 5 then
    return brief(GRANTED, #queue(id) + token())
end
return answer(t.died and GRANTED_OWNERDEAD or now > 5 and DONE or BUSY, unpack({}))
END
sed -i 's/ or now > 5 and DONE or BUSY, unpack({}))/ or GRANTED, words)/; s/^return answer/local function all()\n    return answer(DONE, unpack(t))\nend\nreturn t.all and all() or answer/' demo/take.lua
cat >expected <<'END'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_text = #time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)
if now > (ARGV[6] + 0) then
return { -1, now, (ARGV[7] + 0) }
end
local t = { name = KEYS[1], limit = (ARGV[1] + 0) + 1, ["a;b"] = 'c\\d\n', x = "??/", y = '%d $x ${y} @z@ [', z = '-- no comment' }
local function token()
return 7
end
local FIRST = 'first'
local function queue(key)
return { key, token(), FIRST }
end
if (ARGV[4] % 32 >= 16) and (ARGV[4] + 0 >= 32) then
return { 3, now, (ARGV[7] + 0) }
elseif (ARGV[4] % 4 >= 2) or KEYS[3] == KEYS[2] then
return { 0, now, (ARGV[7] + 0), t.limit, #queue({ 1, 2 }) }
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if t.limit > 5 then
return '1 ' .. now_text .. ' ' .. ARGV[7] .. ' ' .. (#queue(ARGV[5]) + token())
end
local function all()
return { 4, now, (ARGV[7] + 0), unpack(t) }
end
return t.all and all() or { t.died and 2 or 1, now, (ARGV[7] + 0), ARGV[2] }
END
embed take.lua
text_of take
differ expected plain
differ expected sharded
grep -qF 'int64_t ttl_ms;' out/demo/scripts.h || { cat out/demo/scripts.h; exit 1; }
[[ $(grep -c 'return token()' out/below/scripts.c) = 1 && $(grep -c 'return 7' out/demo/scripts.c) = 0 ]] ||
    { echo "a part is not embedded once, with its module"; exit 1; }

# Nothing is written that was there.
touch -d '1 hour ago' out/demo/scripts.c out/demo/scripts.h
embed take.lua
[[ -z $(find out/demo -newermt '10 minutes ago' -type f) ]] || { echo "written anew without a change"; exit 1; }

# The time is asked for where it is needed first, if the script may end without it; a message is for the node to send.
cat >demo/undated.lua <<'END'
-- undated.lua
-- uses: queue
-- keys: name string
-- args: channel text
-- verdicts: DONE GONE
-- resend: harmless
local deaf = { publish = 1 }
if redis.call('DEL', name) == 0 and publish(channel, '0') ~= deaf.publish then
    return undated(GONE)
end
redis.call('SET', name, now_text)
return answer(shout(channel) and DONE)
END
cat >expected <<'END'
local PUBLISH = 'PUBLISH'
local deaf = { publish = 1 }
if redis.call('DEL', KEYS[1]) == 0 and redis.pcall(PUBLISH, ARGV[1], '0') ~= deaf.publish then
return '5 0 ' .. ARGV[2]
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_text = #time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)
redis.call('SET', KEYS[1], now_text)
local function shout(to)
return redis.pcall(PUBLISH, 'äll:' .. to, table.concat({ 'a', 'b' }, 'publish('))
end
return { shout(ARGV[1]) and 4, now, (ARGV[2] + 0) }
END
embed undated.lua
text_of undated
differ expected plain
differ <(sed "1s/'PUBLISH'/'SPUBLISH'/" expected) sharded
grep -qF '.undated = 1,' out/demo/scripts.c || { echo "not undated"; cat out/demo/scripts.c; exit 1; }
grep -qF 'lk__lua_demo_commands[] = "del publish set time";' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }

# A raw script takes what it is given, and has no keys.
printf -- '-- ping.lua\n-- raw: nobody is there yet\nreturn ARGV[1] -- so\n' >demo/ping.lua
embed ping.lua
text_of ping
differ <(echo 'return ARGV[1]') plain

# --- scripts that stand for others ------------------------------------------------------------------------------------

cat >demo/whole.lua <<'END'
-- keys: thing string, other string
-- args: word text, number ms
-- sent: id deadline_us
-- verdicts: DONE left ms
--           GONE LATE
-- resend: harmless
if redis.call('GET', thing) ~= id then
    return answer(GONE)
end
redis.call('SET', other, word)
return answer(DONE, number)
END
sed 's/, other string/\n-- instead: whole 2  a note/; s/word text, //; /other/d' demo/whole.lua >demo/step.lua
cat >demo/batch.lua <<'END'
-- batch: step  ARGV are ...
-- sent: deadline_us
-- verdicts: DONE all text
--           LATE
-- resend: harmless
return answer(DONE, #KEYS .. ARGV[3])
END
embed whole.lua step.lua batch.lua
grep -qF '.instead = { NULL, &lk__lua_demo_step },' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }
grep -qF '.batch = &lk__lua_demo_batch,' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }
grep -qF 'offsetof(struct lk__demo_whole_args, number)' <(sed -n '/step_args/,/};/p' out/demo/scripts.c)
! grep -qF 'struct lk__demo_step_args' out/demo/scripts.h || { cat out/demo/scripts.h; exit 1; }
refuses "should be a script of this module" < <(sed 's/whole 2/whole/' demo/step.lua)

# --- the C side: the writer writes what the script reads, the reader reads what it answers ------------------------------

embed take.lua
cat >main.c <<'END'
#include "demo/scripts.h"
#include <stdio.h>
int main(void)
{
    const struct lk__demo_keys keys = { .name = "a", .other = "b", .third = "c" };
    struct lk__demo_take_args args = { .limit = 30000, .words = "w", .ttl_ms = 5 };
    args.flags = LK__DEMO_ROBUST | LK__DEMO_FAIR;
    struct lk__demo_take_reply reply = { .verdict = LK__QUEUED, .server_us = 1, .token = 2, .n = 3, .left_ms = 4,
                                         .holder = "x", .list = 3, .list_count = 9 };
    void (*read)(const struct lk__reply *, struct lk__demo_take_reply *) = lk__demo_take_read;
    const struct lk__script *s = &lk__lua_demo_take;
    printf("keys %d: %u %u %u\n", s->keys, s->key_at[0], s->key_at[1], s->key_at[2]);
    for (int i = 0; i < s->arg_count; i++)
        printf("%u@%u ", s->args[i].kind, s->args[i].at);
    printf("\nflags %u %u\n", s->flags, s->sent_flags);
    for (int i = 0; i < s->shape_count; i++)
        printf("%d:%s ", s->shapes[i].verdict, s->shapes[i].elements);
    (void)keys, (void)args, (void)reply, (void)read;
}
END
cat >expected <<'END'
keys 3: 0 8 16
1@0 0@8 1@16 2@24 3@0 4@8 6@0 
flags 48 2
1:n 2:n 0:nn?t 4:t* 3: -1: 
END
sed -i 's/0:nn?t/0:n?nt/' expected
"$cc" "${flags[@]}" -c out/demo/scripts.c -o scripts.o
"$cc" "${flags[@]}" -c main.c -o main.o
"$cc" main.o scripts.o below.o -x c stubs.c -o main
differ expected <(./main | sed '$a\')

# A struct of somebody else's is filled in, and has to have the members.
mkdir -p out/other
echo 'struct lk__theirs { enum lk__verdict verdict; int64_t server_us; int64_t token; };' >out/other/other.h
cat >demo/ask.lua <<'END'
-- ask.lua
-- sent: id
-- verdicts: DONE token number
-- reply: lk__theirs other/other.h
-- resend: harmless
return answer(DONE, #id)
END
embed ask.lua
"$cc" "${flags[@]}" -c out/demo/scripts.c -o theirs.o
sed -i 's/ int64_t token;//' out/other/other.h
if "$cc" "${flags[@]}" -c out/demo/scripts.c -o theirs.o 2>/dev/null; then echo "the struct lacks a member"; exit 1; fi

# --- mistakes ---------------------------------------------------------------------------------------------------------

typed() { # <header> <body>
    printf -- '-- resend: no\n%s\n%s\n' "$1" "$2"
}
done='-- verdicts: DONE'

refuses 'a raw script has' <<<$'-- raw: why\n-- verdicts: DONE\nreturn 1'
refuses 'a raw script has' <<<$'-- raw:\nreturn 1'
refuses 'a raw script does not publish' <<<$'-- raw: why\nreturn publish(1, 2)'
refuses 'no long brackets' <<<$'--[[ several\nlines ]]\nreturn 1'
refuses 'no strings over several lines' <<<$'return "a\\\nb"'
refuses 'cannot be read' <<<$'return @'
refuses 'the name of a command stands in the call' <<<$'-- raw: why\nlocal name = "GET"\nreturn redis.call(name, "a")'
refuses 'the name of a command stands in the call' < <(typed "$done" $'redis.call(\'SPUBLISH\', 1)\nreturn answer(DONE)')
refuses 'name is declared, but the body does not read it' < <(typed $'-- keys: name hash\n'"$done" 'return answer(DONE)')
refuses 'limit is declared, but the body does not read it' < <(typed $'-- args: limit ms\n'"$done a ms" \
    'return answer(DONE, ({ limit = 1 }).limit)')
refuses 'fair is declared, but the body does not read it' < <(typed $'-- flags: fair\n'"$done" 'return answer(DONE)')
refuses 'bad.lua:3: limit is not declared' < <(typed "$done" 'return limit and answer(DONE)')
refuses 'KEYS is not declared' < <(typed "$done" 'return KEYS[1] and answer(DONE)')
refuses 'NICE is no verdict' < <(typed '-- verdicts: NICE' 'return answer(NICE)')
refuses 'GONE is not declared' < <(typed "$done" 'return answer(GONE and DONE)')
refuses 'the verdict GONE is declared, but the body does not answer it' < <(typed "$done GONE" 'return answer(DONE)')
refuses 'DONE is no verdict of' < <(typed "$done DONE" 'return answer(DONE)')
refuses 'the header names no verdicts' <<<'return 1'
refuses 'DONE is answered with 1 elements, but the header has 0 to 0' < <(typed "$done" 'return answer(DONE, 1)')
refuses 'DONE is answered with 3 elements, but the header has 1 to 2' < <(typed "$done a ms, b text?" \
    'return answer(DONE, 1, 2, { 3, 4 })')
refuses 'GONE is answered with 1 elements' < <(typed "$done a ms"$'\n--           GONE' \
    'return answer(now == 1 and DONE or GONE, 1)')
refuses 'answer() begins with a verdict' < <(typed "$done" 'return answer(now) or answer(DONE)')
refuses 'brief() has one verdict, and numbers alone' < <(typed "$done" 'return brief(now and DONE)')
refuses 'brief() has one verdict, and numbers alone' < <(typed "$done x text" 'return brief(DONE, 1)')
refuses 'b stands behind what may be missing' < <(typed "$done a ms?, b ms" 'return answer(DONE, 1, 2)')
refuses "'a' should be a name and a type" < <(typed "$done a" 'return answer(DONE, 1)')
refuses 'a has another type with another verdict' < <(typed "$done a ms"$'\n--           GONE a text' \
    'return now and answer(DONE, 1) or answer(GONE, 1)')
refuses 'LATE is the verdict of scripts that are sent a deadline_us' < <(typed "$done LATE" 'return answer(DONE)')
refuses 'DISAGREES is the verdict of scripts that are sent settings' < <(typed $'-- sent: settings\n'"$done" 'return answer(DONE)')
refuses "'name table' is no name and type of a key" < <(typed $'-- keys: name table\n'"$done" 'return answer(DONE)')
refuses "'Limit ms' is no name and type of an argument" < <(typed $'-- args: Limit ms\n'"$done" 'return answer(DONE)')
refuses 'now cannot be the name of an argument' < <(typed $'-- args: now us\n'"$done" 'return answer(DONE)')
refuses 'name cannot be the name of an argument' < <(typed $'-- keys: name hash\n-- args: name text\n'"$done" '')
refuses 'name is declared by the header, and again' < <(typed $'-- keys: name hash\n'"$done" $'for name in 1 do\nend')
refuses 'token is declared by the header, and again' < <(typed $'-- uses: token\n-- keys: token hash\n'"$done" '')
refuses 'nothing that is sent is called speed' < <(typed $'-- sent: speed\n'"$done" 'return answer(DONE, speed)')
refuses "there is no field 'key:'" < <(typed $'-- key: name hash\n'"$done" 'return answer(DONE, name)')
refuses "there are two fields 'keys:'" < <(typed $'-- keys: name hash\n-- keys: other hash\n'"$done" 'return 1')
refuses 'does not say what a resend does' <<<$'-- verdicts: DONE\nreturn answer(DONE)'
refuses 'uses token, but nothing of it' < <(typed $'-- uses: token\n'"$done" 'return answer(DONE)')
refuses 'uses nothing: there are 0 parts of this name' < <(typed $'-- uses: nothing\n'"$done" 'return answer(DONE)')

printf -- '-- keys: name hash\n-- verdicts: DONE\n-- resend: no\nredis.call("", name)\nreturn answer(DONE)\n' |
    sed "s/\"\"/'GET'/" >demo/one.lua
sed 's/name hash/name zset/' demo/one.lua >demo/two.lua
if embed one.lua two.lua 2>message; then echo "a key of two types"; exit 1; fi
grep -qF 'demo/two.lua: name is a zset, but a hash in another script' message || { cat message; exit 1; }

uses() { # <part of the message>, a part on stdin
    cat >below/wrong.lua
    refuses "$1" < <(typed $'-- uses: wrong\n'"$done" 'return wrong() and answer(DONE)')
}
uses 'ARGV is not declared' <<<$'local function wrong()\n    return ARGV[1]\nend'
uses "a part has no field 'keys:'" <<<$'-- keys: name hash\nlocal function wrong()\nend'
uses 'wrong.lua:2: token is not declared' <<<$'local function wrong()\n    return token()\nend'
uses 'a part has nothing but local functions and constants' <<<$'local function wrong()\nend\nwrong()'
printf -- '-- uses: wrong\nlocal function circle()\nend\n' >below/circle.lua
uses 'uses wrong -> circle -> wrong, which is a circle' <<<$'-- uses: circle\nlocal function wrong()\nend'
echo "scripts.py is as it should be"
