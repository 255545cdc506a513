-- release.lua - give a read-write lock back, give up waiting for it, or give back what was granted meanwhile
--
-- uses:     admit holders queue
-- keys:     holders zset, token string, readers zset, writers zset, alive hash, mark string    see acquire.lua
-- flags:    robust shared readers_first writers_first phase_fair
-- sent:     id                          with its mode, finished from now on
--           again                       of an id that was asked for again the answer is dated
--           unrepaired untold           count for a writer
-- verdicts: DONE GONE                   GONE: it was not a holder
-- resend:   harmless: a finished id is nowhere

-- It begins with a command that a server out of memory allows; then that allows the rest.
local mine, there, writer = nil, 0, nil
if not (robust or again) then -- most of all releases, if nobody waits: they need not even the time
    mine = redis.call('ZREM', holders, id) == 1 and id
    there = mine and redis.call('EXISTS', readers, writers) or 0
    if mine and there == 0 then
        return undated(DONE)
    end
end

local order = readers_first and 'reader' or writers_first and 'writer' or phase_fair and 'phase' or 'fair'
if there > 0 then
    writer = redis.call('ZRANGE', writers, '0', '0', 'WITHSCORES')
end
local served = writer and writer[1] and writer[1] ~= id and
    not (there == 2 and readers_are_next(order, alive, first_of(readers), tonumber(writer[2]))) and
    let_writer_in(holders, token, writers, alive, writer[1], id, now, now_text, shared, readers, phase_fair)
if served then
    return brief(DONE)
end

local wrote = mine and is_writer(mine)
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
if there == 0 and redis.call('EXISTS', readers, writers) == 0 then
    return answer(mine and DONE or GONE)
end

local lock = { holders = holders, token = token, readers = readers, writers = writers, alive = alive, mark = mark,
    now_text = now_text, robust = robust, shared = shared, order = order }
local queue, other = queues_of(lock, id)
leave(queue, alive, id, now, other)
if unrecoverable then
    call_off(readers, 0)
    call_off(writers, 0)
elseif not (robust and redis.call('GET', mark) == 'unrecoverable') then
    let_in(lock, nil, now, wrote)
end
return answer(mine and DONE or GONE)
