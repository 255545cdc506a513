#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cmake/scripts.py: what it embeds is what Redis will hash, byte for byte; a typed header becomes a prologue in Lua and
# structs in C that fit each other; and mistakes stop the build, each with words that name it.
#   scripts_test.sh <python3> <source folder> <C compiler>
set -euo pipefail
python=$1 tree=$2 cc=$3
vocabulary=$tree/src/redis/vocabulary
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# A module is compiled once, where a program would be at each of two hundred calls.
export PYTHONPYCACHEPREFIX=$work/compiled PYTHONDONTWRITEBYTECODE=
make=("$python" -S -c 'import sys; sys.path.insert(0, sys.argv[1]); import scripts; sys.exit(scripts.main(sys.argv[2:]))' "$tree/cmake")
mkdir -p demo out/demo out/redis

embed() { # <script.lua>...
    "${make[@]}" module demo "$vocabulary" out/demo --scripts "${@/#/demo/}" --parts parts/*.lua
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

# A part on stdin, of that name.
part() { # <name>
    mkdir -p parts
    cat >"parts/$1.lua"
}

differ() { # <expected> <found>
    diff "$1" "$2" || { echo "not as expected: $2"; exit 1; }
}

# What a script is embedded as, without the quotes and escapes of C.
text_of() { # <script>
    sed -n "/^static const char $1_source/,/;\$/s/^    \"\(.*\)\"[;]*\$/\1/p" out/demo/scripts.c |
        sed 's/\\n$//; s/\\\([\\"?]\)/\1/g'
}

# --- raw scripts: what is embedded ---------------------------------------------------------------------------

part token <<'END'
-- token.lua - a part

local function token()
    return 7
end

local function unused()
    return token()
end
END
part queue <<'END'
-- uses: token
local FIRST = 'first'
local SECOND = 'second'
local function queue(key)
	return { key, token(), FIRST } -- dropped
end
END
cat >demo/take.lua <<'END'
-- take.lua - letters that C, CMake and lists could stumble over
-- uses: queue
-- raw:  every letter is looked at
local t = { "a;b", 'c\\d\n', "??/", '%d $x ${y} @z@ [', "é", '-- no comment' }

    -- an indented comment with KEYS[9]
    if t[#t] ~= ARGV[1] then
        return queue(ARGV[2]) -- token
    end
return t
END
sed -i 's/ then$/ then \t /' demo/take.lua # blanks at an end, which editors would take out here
cat >expected <<'END'
local function token()
return 7
end
local FIRST = 'first'
local function queue(key)
return { key, token(), FIRST }
end
local t = { "a;b", 'c\\d\n', "??/", '%d $x ${y} @z@ [', "é", '-- no comment' }
if t[#t] ~= ARGV[1] then
return queue(ARGV[2])
end
return t
END
cat >main.c <<'END'
#include "redis/redis.h"
#include "demo/scripts.h"
#include <stdio.h>
int main(void)
{
    const struct lk__script *s = &lk__lua_demo_take;
    fprintf(stderr, "%s %d %s\n", s->name, s->keys, s->sha1[LK__PUBSUB_PLAIN]);
    return fwrite(s->source, 1, s->length, stdout) == s->length && s->source[s->length] == 0 ? 0 : 1;
}
END
flags=(-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-overlength-strings -Iout "-I$tree/src" "-I$tree/include")
"${make[@]}" vocabulary "$vocabulary" out/redis/vocabulary.h

embed take.lua
"$cc" "${flags[@]}" main.c out/demo/scripts.c -o main
./main >embedded 2>said
differ expected <(cat embedded; echo)
read -r sum _ < <(sha1sum embedded)
[[ $(<said) = "demo/take 0 $sum" ]] || { cat said; exit 1; }

# Nothing is written that was there; what is there twice is the same.
touch -d '1 hour ago' out/demo/scripts.c out/demo/scripts.h out/redis/vocabulary.h
embed take.lua
"${make[@]}" vocabulary "$vocabulary" out/redis/vocabulary.h
[[ -z $(find out -newermt '10 minutes ago' -type f) ]] || { echo "written anew without a change"; exit 1; }

# The commands of all scripts of a module, those of parts that are joined as well, each once and in order.
part get <<'END'
local function get()
    return redis.call('GET', 'b') or redis.call('DEL', 'b')
end
local function flush()
    redis.call('FLUSHALL')
end
END
printf -- "-- set.lua\n-- uses: get\n-- raw: why\nredis.call('SET', 'a', 1)\nredis.pcall('GET', 'a')\nreturn get()\n" >demo/set.lua
embed set.lua take.lua
grep -qF 'lk__lua_demo_commands[] = "del get set";' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }

# A raw one takes what it is given, and has no keys.
printf -- '-- ping.lua\n-- raw: nobody is there yet\nreturn ARGV[1] -- so\n' >demo/ping.lua
embed ping.lua
differ <(echo 'return ARGV[1]') <(text_of ping)
refuses 'a raw script has no keys' <<<$'-- raw: why\nreturn KEYS[1]'
refuses "a raw script has no field 'verdicts:'" <<<$'-- raw: why\n-- verdicts: DONE\nreturn 1'
refuses "'raw:' says why" <<<$'-- raw:\nreturn 1'

refuses 'uses nothing: there are 0 parts of this name' <<<$'-- raw: why\n-- uses: token nothing\nreturn 1'
refuses 'no long brackets' <<<$'--[[ several\nlines ]]\nreturn 1'
refuses 'no strings over several lines' <<<$'return "a\\\nb"'
refuses 'has to stand in the call' <<<$'-- raw: why\nlocal name = "GET"\nreturn redis.call(name, "a")'
refuses 'has to stand in the call' <<<$'-- raw: why\nreturn redis.pcall("GET", "a")'
refuses 'cannot be read' <<<$'return @'

# --- scripts that publish ----------------------------------------------------------------------------------------

# There is one text, and where it has to have an S for the other command, in parts and all; what only looks like a call
# stays as it is.
part shout <<'END'
local function shout(to)
    return publish('äll:' .. to, table.concat({ 'a', 'b' }, 'publish(')) -- publish()
end
END
cat >demo/say.lua <<'END'
-- say.lua
-- uses: shout
-- args: channel text
-- verdicts: DONE heard number
-- resend: harmless
local heard = publish(channel, '0')
local deaf = { publish = 1 }
local function mute(publish)
    return publish(1)
end
if type(heard) == 'number' and mute(shout) == deaf.publish then
    return answer(DONE, heard)
end
return answer(DONE, publish (string.sub('a,b', 1, 2),
    'two'))
END
cat >expected <<'END'
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local heard = redis.pcall('PUBLISH', ARGV[1], '0')
local deaf = { publish = 1 }
local function mute(publish)
return publish(1)
end
local function shout(to)
return redis.pcall('PUBLISH', 'äll:' .. to, table.concat({ 'a', 'b' }, 'publish('))
end
if type(heard) == 'number' and mute(shout) == deaf.publish then
return { 4, now, ARGV[2] + 0, heard }
end
return { 4, now, ARGV[2] + 0, redis.pcall('PUBLISH', string.sub('a,b', 1, 2),
'two') }
END
embed say.lua ping.lua
differ expected <(text_of say)
grep -qF 'lk__lua_demo_commands[] = "publish time";' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }
sed "s/'PUBLISH'/'SPUBLISH'/" expected >sharded
sum() { # <file>; a script has no newline at its end
    printf %s "$(<"$1")" | sha1sum | cut -d ' ' -f 1
}
cat >main.c <<'END'
#include "redis/redis.h"
#include "demo/scripts.h"
#include <stdio.h>
int main(void)
{
    const struct lk__script *s = &lk__lua_demo_say;
    size_t from = 0;
    for (int i = 0; i < s->publish_count; from = s->publishes[i++])
        printf("%.*s%s", (int)(s->publishes[i] - from), s->source + from, "S");
    printf("%s\n", s->source + from);
    fprintf(stderr, "%s %s %d %d", s->sha1[LK__PUBSUB_PLAIN], s->sha1[LK__PUBSUB_SHARDED], s->publish_count,
            lk__lua_demo_ping.publish_count);
}
END
"$cc" "${flags[@]}" -c out/demo/scripts.c -o scripts.o
"$cc" "${flags[@]}" -c main.c -o main.o
printf 'int lk__answer_read, lk__reply_number;\n' >stubs.c
"$cc" main.o scripts.o -x c stubs.c -o main
./main >found 2>said
differ sharded found
[[ $(<said) = "$(sum expected) $(sum sharded) 3 0" ]] || { cat said; exit 1; }

refuses 'PUBLISH is for the node to choose' <<<$'-- raw: why\nreturn redis.pcall(\'PUBLISH\', \'a\', \'b\')'
refuses 'SPUBLISH is for the node to choose' <<<$'-- raw: why\nreturn redis.call(\'SPUBLISH\', \'a\', \'b\')'
refuses 'publish() takes a channel and a message' <<<$'-- raw: why\nreturn publish()'
refuses 'publish() takes a channel and a message' <<<$'-- raw: why\nreturn publish(\'a\')'
refuses 'publish() takes a channel and a message' <<<$'-- raw: why\nreturn publish(\'a\', )'
refuses 'publish() takes a channel and a message' <<<$'-- raw: why\nreturn publish(\'a\', \'b\', \'c\')'
refuses 'publish is called' <<<$'-- raw: why\nlocal say = publish\nreturn say(\'a\', \'b\')'
refuses 'publish is called' <<<$'-- raw: why\npublish = 1\nreturn 1'
refuses 'publish is called' <<<$'-- raw: why\nreturn publish'

# --- a batch ------------------------------------------------------------------------------------------------------

# The body is called for each key; what it needs of parts stands before it, once.
part twice <<'END'
local FACTOR = 2
local function twice(n)
    return FACTOR * n
end
END
cat >demo/keep.lua <<'END'
-- keep.lua
-- uses: twice
-- keys: thing string
-- args: word text
-- sent: id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend: harmless
-- batch: many at one time
if redis.call('GET', thing) ~= id then -- answer(GONE)
    return answer(GONE)
end
redis.call('PEXPIRE', thing, twice(lease_ms))
return answer(publish(word, '0') and DONE or GONE)
END
cat >expected <<'END'
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
if now > ARGV[1] + 0 then
return { -1, now, ARGV[2] + 0 }
end
local FACTOR = 2
local function twice(n)
return FACTOR * n
end
local function one(thing, word, id, lease_ms)
if redis.call('GET', thing) ~= id then
return 5
end
redis.call('PEXPIRE', thing, twice(lease_ms))
return redis.pcall('PUBLISH', word, '0') and 4 or 5
end
local said, at = {}, 3
for i = 1, #KEYS do
said[i] = one(KEYS[i], ARGV[at], ARGV[at + 1], ARGV[at + 2] + 0)
at = at + 3
end
return { 4, now, ARGV[2] + 0, table.concat(said) }
END
embed keep.lua
differ expected <(text_of keep_batch)
grep -qF '.batch = &lk__lua_demo_keep_batch,' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }
refuses 'what goes in a batch has one key' < <(sed 's/thing string/&, other string/; s/~= id/& or other/' demo/keep.lua)
refuses 'what goes in a batch has one key' < <(sed 's/^-- resend/-- flags: fair\n&/; s/~= id/& or fair/' demo/keep.lua)
refuses 'in a batch a verdict is one digit' < <(sed 's/GONE LATE/GONE left number?\n--       LATE/' demo/keep.lua)
refuses 'in a batch a verdict is one digit' < <(sed 's/GONE/UNRECOVERABLE/' demo/keep.lua)

# --- a script that stands for another one ----------------------------------------------------------------------------

cat >demo/whole.lua <<'END'
-- keys: thing string, other string
-- args: word text, number ms
-- sent: id
-- verdicts: DONE left ms
--           GONE
-- resend: harmless
if redis.call('GET', thing) ~= id then
    return answer(GONE)
end
redis.call('SET', other, word)
return answer(DONE, number)
END
cat >demo/step.lua <<'END'
-- keys: thing string
-- args: number ms
-- sent: id
-- instead: whole 2  a note
-- verdicts: DONE left ms
--           GONE
-- resend: harmless
if redis.call('GET', thing) ~= id then
    return answer(GONE)
end
return answer(DONE, number)
END
embed whole.lua step.lua
grep -qF '.instead = { NULL, &lk__lua_demo_step },' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }
grep -qF 'offsetof(struct lk__demo_whole_args, number)' <(sed -n '/step_args/,/};/p' out/demo/scripts.c)
! grep -qF 'struct lk__demo_step_args' out/demo/scripts.h || { cat out/demo/scripts.h; exit 1; }
stands_badly() { # <part of the message> <change of step.lua>
    sed "$2" demo/step.lua >demo/bad.lua
    ! embed whole.lua bad.lua >message 2>&1 || { cat demo/bad.lua; exit 1; }
    grep -qF -- "$1" message || { echo "does not say '$1':"; cat message; exit 1; }
}
stands_badly "should be a script of this module, and 1 or 2" 's/whole 2/whole/'
stands_badly "should be a script of this module, and 1 or 2" 's/whole 2/others 2/'
stands_badly "has one key" 's/thing string/&, other string/; s/~= id/& or other/'
stands_badly "number is no such argument of whole" 's/number ms/number text/; s/left ms/left ms/'
stands_badly "does not answer as whole does" 's/left ms/left number/'
sed 's/whole 2/whole 1/; s/DONE left ms/DONE/; s/DONE, number/number and DONE/' demo/step.lua >demo/first.lua
embed whole.lua first.lua
grep -qF '.instead = { &lk__lua_demo_first, NULL },' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }
refuses 'does not read deadline_us' < <(sed "s/'0')/deadline_us)/" demo/keep.lua)

# --- a typed script --------------------------------------------------------------------------------------------

# A whole typed script with these lines in it, and that body.
typed() { # <lines of the header> <body>
    printf -- '-- bad.lua\n%s\n-- resend: harmless\n%s\n' "$1" "$2"
}

cat >demo/take.lua <<'END'
-- take.lua - take it
--
-- Prose, which may have: colons.
--
-- uses:     queue get
-- keys:     name hash                     owner -> holds
--           other zset, third string
-- args:     limit ms, words text
--           least number
-- flags:    fair robust
-- sent:     id deadline_us arrival        and so on
--           again
-- verdicts: GRANTED GRANTED_OWNERDEAD token number
--           QUEUED arrival_number number, left_ms ms,
--               holder text?
--           DONE list text...             all there are
--           BUSY LATE
-- resend:   harmless
local t = { name = name, limit = limit + least, fair = fair }
if fair and robust then
    return answer(BUSY)
elseif again or third == other then
    return answer(QUEUED, arrival, t.limit)
elseif redis.call('GET', other) == id then
    -- nobody answer(DONE)s here
    return answer(QUEUED, #queue({ 1, 2 }), limit, 'x')
end
local died = function() return answer(DONE, unpack(t)) end
if get() then
    return answer(t.died == 1 and GRANTED_OWNERDEAD or GRANTED, string.len(words))
end
return died()
END
cat >expected <<'END'
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
if now > ARGV[6] + 0 then
return { -1, now, ARGV[8] + 0 }
end
local flags = ARGV[4] + 0
local limit, fair = ARGV[1] + 0, flags % 32 >= 16
local t = { name = KEYS[1], limit = limit + (ARGV[3] + 0), fair = fair }
local function token()
return 7
end
local FIRST = 'first'
local function queue(key)
return { key, token(), FIRST }
end
local other = KEYS[2]
if fair and (flags >= 32) then
return { 3, now, ARGV[8] + 0 }
elseif (flags % 4 >= 2) or KEYS[3] == other then
return { 0, now, ARGV[8] + 0, (ARGV[7] + 0), t.limit }
elseif redis.call('GET', other) == ARGV[5] then
return { 0, now, ARGV[8] + 0, #queue({ 1, 2 }), limit, 'x' }
end
local died = function() return { 4, now, ARGV[8] + 0, unpack(t) } end
local function get()
return redis.call('GET', 'b') or redis.call('DEL', 'b')
end
if get() then
return { t.died == 1 and 2 or 1, now, ARGV[8] + 0, string.len(ARGV[2]) }
end
return died()
END
embed take.lua
differ expected <(text_of take)

# A number that goes to the server as it came is not read and printed again on its way.
cat >demo/pass.lua <<'END'
-- pass.lua
-- keys: name string
-- args: ttl_ms ms, times number, both ms
-- verdicts: DONE
-- resend: harmless
redis.call('PEXPIRE', name, ttl_ms)
redis.pcall('SET', name, times + 1, 'PX', both)
return answer(both > 0 and DONE)
END
cat >expected <<'END'
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local name = KEYS[1]
redis.call('PEXPIRE', name, ARGV[1])
local both = ARGV[3] + 0
redis.pcall('SET', name, (ARGV[2] + 0) + 1, 'PX', both)
return { both > 0 and 4, now, ARGV[4] + 0 }
END
embed pass.lua
differ expected <(text_of pass)

# Nor are digits, however often they are read; those of the time are put together from its reply, if they are wanted.
cat >demo/digits.lua <<'END'
-- digits.lua
-- keys: name string
-- args: ttl_ms digits
-- sent: deadline_us
-- verdicts: DONE LATE
-- resend: harmless
redis.call('SET', name, now_text, 'PX', ttl_ms)
return answer(ttl_ms == '5' and DONE)
END
cat >expected <<'END'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > ARGV[2] + 0 then
return { -1, now, ARGV[3] + 0 }
end
local ttl_ms = ARGV[1]
redis.call('SET', KEYS[1], (#time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)), 'PX', ttl_ms)
return { ttl_ms == '5' and 4, now, ARGV[3] + 0 }
END
embed digits.lua
differ expected <(text_of digits)
grep -qF 'int64_t ttl_ms;' out/demo/scripts.h || { cat out/demo/scripts.h; exit 1; }
grep -qF '{ LK__ARG_NUMBER, offsetof(struct lk__demo_digits_args, ttl_ms) }' out/demo/scripts.c || { cat out/demo/scripts.c; exit 1; }

# The short form of a call leaves out what it nearly always says: that stands behind the rest.
cat >demo/brief.lua <<'END'
-- brief.lua
-- keys: name string, other zset
-- args: often number, ttl_ms digits
-- flags: fair
-- sent: id
-- short: often 7, flags 0, other
-- verdicts: DONE
-- resend: harmless
redis.call('SET', name, id, 'PX', ttl_ms)
if not short and fair then
    redis.call('ZADD', other, often, 'x')
end
return answer(DONE)
END
cat >expected <<'END'
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local short = #ARGV == 3
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
if not short and ((short and 0 or ARGV[4] + 0) >= 16) then
redis.call('ZADD', KEYS[2], (short and 7 or ARGV[3] + 0), 'x')
end
return { 4, now, ARGV[short and 3 or 5] + 0 }
END
embed brief.lua
differ expected <(text_of brief)
for line in '.short_keys = 1,' '.default_count = 2,' 'brief_defaults[] = { 7, 0 };'; do
    grep -qF "$line" out/demo/scripts.c || { echo "no $line"; cat out/demo/scripts.c; exit 1; }
done

# The time is asked for where it is needed first, if the script may end without it.
cat >demo/undated.lua <<'END'
-- undated.lua
-- keys: name string
-- verdicts: DONE GONE
-- resend: harmless
if redis.call('DEL', name) == 0 then
    return undated(GONE)
end
redis.call('SET', name, now_text)
return answer(DONE)
END
cat >expected <<'END'
local name = KEYS[1]
if redis.call('DEL', name) == 0 then
return '5 0 ' .. ARGV[1]
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('SET', name, (#time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)))
return { 4, now, ARGV[1] + 0 }
END
embed undated.lua
differ expected <(text_of undated)
grep -qF '.undated = true,' out/demo/scripts.c || { echo "not undated"; cat out/demo/scripts.c; exit 1; }
refuses 'undated(): a script with a deadline or settings begins with the time' < <(typed \
    $'-- sent: deadline_us\n-- verdicts: DONE LATE' 'return now and undated(DONE) or answer(DONE)')

# An answer of numbers may be one text, of which the time is a part.
cat >demo/numbers.lua <<'END'
-- numbers.lua
-- keys: name string
-- flags: fair
-- sent: id
-- short: flags 0
-- verdicts: DONE left_ms ms, n number?, holder text?
--           GONE
-- resend: harmless
local left = redis.call('PTTL', name)
if left >= 0 then
    return fair and brief(DONE, left, left > 5 and 1 or 0) or brief(DONE, left)
elseif left == -1 then
    return answer(DONE, left, 0, id)
end
return brief(GONE)
END
cat >expected <<'END'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local short = #ARGV == 2
local left = redis.call('PTTL', KEYS[1])
local now_text = #time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)
if left >= 0 then
return ((short and 0 or ARGV[2] + 0) >= 16) and '4 ' .. now_text .. ' ' .. ARGV[short and 2 or 3] .. ' ' .. ( left) .. ' ' .. ( left > 5 and 1 or 0) or '4 ' .. now_text .. ' ' .. ARGV[short and 2 or 3] .. ' ' .. ( left)
elseif left == -1 then
return { 4, now, ARGV[short and 2 or 3] + 0, left, 0, ARGV[1] }
end
return '5 ' .. now_text .. ' ' .. ARGV[short and 2 or 3]
END
embed numbers.lua
differ expected <(text_of numbers)
refuses 'brief() has one verdict, by its name' < <(typed '-- verdicts: DONE GONE' 'return brief(now > 5 and DONE or GONE)')
refuses 'brief() begins with a verdict' < <(typed '-- verdicts: DONE' 'return brief() or answer(DONE)')
refuses 'brief is called: brief(VERDICT, ...)' < <(typed '-- verdicts: DONE' 'local b = brief return answer(DONE)')
refuses 'DONE is answered with 0 elements, but the header has 1' < <(typed '-- verdicts: DONE n number' 'return brief(DONE)')
refuses 'brief() has numbers alone, and DONE is answered with words' < <(typed '-- verdicts: DONE x text' 'return brief(DONE, now)')
brief() { # <what its short form is>
    sed "s/^-- short:.*/-- short: $1/" demo/brief.lua
}
refuses 'the short form leaves out the flags' < <(brief 'often 7, other')
refuses 'the short form leaves out the last keys' < <(brief 'often 7, flags 0, name')
refuses "'ttl_ms 7' should be a number and its usual value, or a key" < <(brief 'ttl_ms 7, flags 0')
refuses "'id 7' should be a number and its usual value, or a key" < <(brief 'id 7, flags 0')
refuses "'often' should be a number and its usual value, or a key" < <(brief 'often, flags 0')
refuses "'speed 7' should be a number and its usual value, or a key" < <(brief 'speed 7, flags 0')
refuses 'short: the header names no short form' < <(typed '-- verdicts: DONE' 'return answer(short and DONE)')
embed take.lua

# The C side: the writer writes what the script reads, the reader reads what it answers.
cat >main.c <<'END'
#include "demo/scripts.h"
#include "redis/redis.h"
#include <stdio.h>
#include <string.h>
int main(void)
{
    const struct lk__demo_keys keys = { .name = "a", .other = "b", .third = "c" };
    struct lk__demo_take_args args = { .limit = 30000, .words = "w", .least = -5 };
    args.flags = LK__DEMO_ROBUST | LK__DEMO_FAIR;
    struct lk__demo_take_reply reply = { .verdict = LK__QUEUED, .server_us = 1, .token = 2, .arrival_number = 3,
                                         .left_ms = 4, .holder = "x", .list = 3, .list_count = 9 };
    bool (*read)(const struct lk__reply *, struct lk__demo_take_reply *) = lk__demo_take_read;
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
1@0 0@8 1@16 2@24 3@0 4@8 4@24 6@0 
flags 48 2
1:n 2:n 0:nn?t 4:t* 3: -1: 
END
"$cc" "${flags[@]}" -c out/demo/scripts.c -o scripts.o
"$cc" "${flags[@]}" -c main.c -o main.o
printf '#include <stdbool.h>\n#include <stdint.h>\nint lk__answer_read;\n' >stubs.c
"$cc" main.o scripts.o -x c stubs.c -o main
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

# --- mistakes in one ----------------------------------------------------------------------------------------------

done='-- verdicts: DONE'

refuses 'name is declared, but the body does not read it' < <(typed $'-- keys: name hash\n'"$done" 'return answer(DONE)')
refuses 'limit is declared, but the body does not read it' < <(typed $'-- args: limit ms\n'"$done" \
    'return answer(DONE, ({ limit = 1 }).limit)')
refuses 'limit is declared, but the body does not read it' < <(typed $'-- args: limit ms\n'"$done" \
    $'limit = 1\nreturn answer(DONE)')
refuses 'fair is declared, but the body does not read it' < <(typed $'-- flags: fair\n'"$done" 'return answer(DONE)')
refuses 'arrival is declared, but the body does not read it' < <(typed $'-- sent: arrival\n'"$done" 'return answer(DONE)')
refuses 'bad.lua:4: limit: declared neither in the header nor in the body' < <(typed "$done" 'return answer(DONE, limit)')
refuses 'declared neither in the header nor in the body' < <(typed "$done" \
    $'if now then\nlocal n = 1\nend\nreturn answer(DONE, n)')
refuses 'KEYS: the header names its elements' < <(typed "$done" 'return answer(DONE, KEYS[1])')
refuses 'request is not for the body' < <(typed "$done" 'return answer(DONE, request)')
refuses 'there is no verdict NICE' < <(typed '-- verdicts: NICE' 'return answer(NICE)')
refuses 'NICE: no verdict is called so' < <(typed "$done" 'return answer(DONE == NICE and DONE)')
refuses 'the header does not name the verdict GONE' < <(typed "$done" 'return answer(GONE)')
refuses 'the verdict GONE is declared, but the body does not answer it' < <(typed "$done GONE" 'return answer(DONE)')
refuses 'DONE is declared twice' < <(typed "$done DONE" 'return answer(DONE)')
refuses 'the header names no verdicts' < <(typed '-- keys: name hash' "return redis.call('GET', name)")
refuses 'the header names no verdicts' <<<'return 1'
refuses 'DONE is answered with 1 elements, but the header has 0' < <(typed "$done" 'return answer(DONE, 1)')
refuses 'DONE is answered with 1 elements, but the header has 2' < <(typed "$done a ms, b us" 'return answer(DONE, (1))')
refuses 'DONE is answered with 3 elements, but the header has 1 to 2' < <(typed "$done a ms, b text?" \
    'return answer(DONE, 1, 2, { 3, 4 })')
refuses 'GONE is answered with 1 elements' < <(typed "$done a ms"$'\n--           GONE' \
    'return answer(now == 1 and DONE or GONE, 1)')
refuses 'DONE is answered with 1 elements, but the header has 1' < <(typed "$done a ms" 'return answer(DONE, unpack({}))')
refuses 'answer() begins with a verdict' < <(typed "$done" 'return answer(now, DONE)')
refuses 'answer() begins with a verdict' < <(typed "$done" $'local v = DONE\nreturn answer()')
refuses 'answer is called' < <(typed "$done" $'local a = answer\nreturn a(DONE)')
refuses 'b stands behind what may be missing' < <(typed "$done a ms?, b ms" 'return answer(DONE, 1, 2)')
refuses "'a' should be a name and a type" < <(typed "$done a" 'return answer(DONE, 1)')
refuses 'a is answered twice' < <(typed "$done a ms, a us" 'return answer(DONE, 1, 1)')
refuses 'a has another type with another verdict' < <(typed "$done a ms"$'\n--           GONE a text' \
    'return now and answer(DONE, 1) or answer(GONE, 1)')
refuses 'LATE is the verdict of scripts that are sent a deadline_us' < <(typed "$done LATE" 'return answer(DONE)')
refuses 'LATE is the verdict of scripts that are sent a deadline_us' < <(typed $'-- sent: deadline_us\n'"$done" \
    'return answer(DONE)')
refuses 'name: table is no type of a key' < <(typed $'-- keys: name table\n'"$done" 'return answer(DONE, name)')
refuses 'limit: int is no type of an argument' < <(typed $'-- args: limit int\n'"$done" 'return answer(DONE, limit)')
refuses "'limit' should be a name and a type" < <(typed $'-- args: limit\n'"$done" 'return answer(DONE, limit)')
refuses "'Limit' is no name for an argument" < <(typed $'-- args: Limit ms\n'"$done" 'return answer(DONE, Limit)')
refuses 'time is not for the body' < <(typed "$done" 'return answer(DONE, time)')
refuses 'time is declared by the header, a part or the server, and again' < <(typed "$done" \
    $'local time = now\nreturn answer(DONE, time)')
refuses 'now cannot be the name of an argument' < <(typed $'-- args: now us\n'"$done" 'return answer(DONE)')
refuses 'redis cannot be the name of a key' < <(typed $'-- keys: redis hash\n'"$done" 'return answer(DONE)')
refuses 'name is declared twice' < <(typed $'-- keys: name hash\n-- args: name text\n'"$done" 'return answer(DONE, name)')
refuses 'name is declared by the header, a part or the server, and again' < <(typed $'-- keys: name hash\n'"$done" \
    $'local name = 1\nreturn answer(DONE)')
refuses 'nothing that is sent is called speed' < <(typed $'-- sent: speed\n'"$done" 'return answer(DONE, speed)')
refuses "there is no field 'key:'" < <(typed $'-- key: name hash\n'"$done" 'return answer(DONE, name)')
refuses "there are two fields 'keys:'" < <(typed $'-- keys: name hash\n-- keys: other hash\n'"$done" 'return 1')
refuses "should be a struct and its header" < <(typed '-- reply: lk__asked'$'\n'"$done" 'return answer(DONE)')
refuses 'does not say what a resend does' <<<$'-- verdicts: DONE\nreturn answer(DONE)'
refuses 'uses token, but nothing of it' < <(typed $'-- uses: token\n'"$done" 'return answer(DONE)')
refuses 'token is declared by the header, and by a part' < <(typed $'-- uses: token\n-- keys: token hash\n'"$done" \
    'return answer(token and DONE)')
refuses 'publish cannot be the name of a key' < <(typed $'-- keys: publish hash\n'"$done" 'return answer(DONE, publish)')
refuses 'publish is declared by the header, a part or the server, and again' < <(typed "$done" \
    $'local publish = now\nreturn answer(publish and DONE)')
refuses 'next is declared by the header, a part or the server, and again' < <(typed "$done" \
    $'local next = now\nreturn answer(next and DONE)')
refuses 'token is declared by the header, a part or the server, and again' < <(typed $'-- uses: token\n'"$done" \
    $'local t = token()\nlocal token = t\nreturn answer(DONE)')
refuses 'no repeat, please' < <(typed "$done" $'repeat\nlocal a = 1\nuntil a\nreturn answer(DONE)')
refuses "unexpected ')'" < <(typed "$done" 'return answer(DONE))')
refuses "a 'block' has no end" < <(typed "$done" $'if now then\nreturn answer(DONE)')
refuses 'a function is local' < <(typed "$done" $'function now()\nend\nreturn answer(DONE)')

printf -- '-- one.lua\n-- keys: name hash\n-- verdicts: DONE\n-- resend: no\nredis.call("", name)\nreturn answer(DONE)\n' |
    sed "s/\"\"/'GET'/" >demo/one.lua
sed 's/name hash/name zset/; s/one.lua/two.lua/' demo/one.lua >demo/two.lua
if embed one.lua two.lua 2>message; then echo "a key of two types"; exit 1; fi
grep -qF 'demo/two.lua: name is a zset, but a hash in another script' message || { cat message; exit 1; }

# --- mistakes in parts and in the vocabulary -----------------------------------------------------------------------

uses() { # <part>
    refuses "$1" < <(printf -- '-- bad.lua\n-- raw: why\n-- uses: wrong\nreturn wrong()\n')
}
part wrong <<<$'local function wrong()\n    return KEYS[1]\nend'
uses 'it does not use KEYS or ARGV'
part wrong <<<$'-- keys: name hash\nlocal function wrong()\nend'
uses "a part has no field 'keys:'"
part wrong <<<$'local function wrong()\n    return missing\nend'
uses 'missing is declared neither here nor in a part that it uses'
part wrong <<<$'local function wrong()\n    return token()\nend'
uses 'token is declared neither here nor in a part that it uses'
part wrong <<<$'-- uses: circle\nlocal function wrong()\nend'
part circle <<<$'-- uses: wrong\nlocal function circle()\nend'
uses 'uses wrong -> circle -> wrong, which is a circle'
part wrong <<<$'local function wrong()\nend\nwrong()'
part circle <<<''
part wrong <<<$'redis.log(1)'
uses 'a part has nothing but local functions and constants'

said_of() { # <part of the message>, a vocabulary on stdin
    cat >words
    if "${make[@]}" vocabulary words out/words.h 2>message; then echo "accepted: $(<words)"; exit 1; fi
    grep -qF -- "$1" message || { echo "does not say '$1':"; cat message; exit 1; }
}
said_of 'DONE stands there twice' <<<$'verdict DONE 1 yes\nverdict DONE 2 yes'
said_of 'another verdict has this number' <<<$'verdict DONE 1 yes\nverdict GONE 1 no'
said_of "'verdict NAME number'" <<<'verdict done 1 yes'
said_of "'verdict NAME number'" <<<'sent id string an id'
echo "scripts.py is as it should be"
