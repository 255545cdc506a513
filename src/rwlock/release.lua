-- release.lua - give a read-write lock back, give up waiting for it, or give back what was granted meanwhile
--
-- uses:     admit holders queue
-- keys:     holders zset, token string, queue zset, alive hash, mark string    see acquire.lua
-- flags:    robust shared readers_first writers_first
-- sent:     id                          with its mode, finished from now on
--           again                       of an id that was asked for again the answer is dated
--           unrepaired untold           count for a writer
-- short:    flags 0, mark
-- verdicts: DONE GONE                   GONE: it was not a holder
-- resend:   harmless: a finished id is nowhere

-- Each way begins with a command that a server out of memory allows; then it allows the rest.
local mine, line
if not (robust or again) then -- most of all releases, if nobody waits: they need not even the time
    mine, line = redis.call('ZREM', holders, id) == 1 and id, redis.call('ZRANGE', queue, '0', '1')
    if mine and not line[1] then
        return undated(DONE)
    end
end

local served
if mine then
    served = let_writer_in(holders, token, queue, alive, line, id, now, now_text, shared)
end
if served then
    return brief(DONE)
end

if not mine then
    look(holders, now)
    mine = held_as(holders, id)
    if mine then
        redis.call('ZREM', holders, mine)
    end
end
local unrecoverable = robust and unrepaired and mine and is_writer(mine)
if unrecoverable then
    redis.call('SET', mark, 'unrecoverable')
elseif robust and mine and is_writer(mine) and
    not (untold and string.sub(redis.call('GET', mark) or '', -2) == ' 1') then
    redis.call('DEL', mark)
end
if redis.call('EXISTS', queue) == 0 then
    return answer(mine and DONE or GONE)
end

local lock = { holders = holders, token = token, queue = queue, alive = alive, mark = mark, now_text = now_text,
    robust = robust, shared = shared, prefer = readers_first and 'r' or writers_first and 'w' or 'rw' }
leave(queue, alive, id, now)
if unrecoverable then
    call_off(queue, 0)
elseif not (robust and redis.call('GET', mark) == 'unrecoverable') then
    let_in(lock, nil, now)
end
return answer(mine and DONE or GONE)
