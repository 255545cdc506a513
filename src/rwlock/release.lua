-- release.lua - give a read-write lock back, give up waiting for it, or give back what was granted meanwhile
--
-- uses:     admit holders queue
-- keys:     holders zset, token string, queue zset, seen zset, mark string    see acquire.lua
-- args:     claim_ms ms                 lease of a claim
-- flags:    robust shared readers_first writers_first
-- sent:     id                          with its mode, finished from now on
--           unrepaired                  counts for a writer
-- verdicts: DONE GONE                   GONE: it was not a holder
-- resend:   harmless: a finished id is nowhere
look(holders, now)
local mine = held_as(holders, id)
local unrecoverable = robust and unrepaired and mine and is_writer(mine)
if mine then
    redis.call('ZREM', holders, mine) -- first: then a server out of memory allows the rest
    end_with_last(holders, now)
    if unrecoverable then
        redis.call('SET', mark, 'unrecoverable')
    elseif robust and is_writer(mine) then
        redis.call('DEL', mark)
    end
end
if redis.call('EXISTS', queue) == 0 then
    return answer(mine and DONE or GONE)
end

local lock = { holders = holders, token = token, queue = queue, seen = seen, mark = mark, claim_ms = claim_ms,
    robust = robust, shared = shared, prefer = readers_first and 'r' or writers_first and 'w' or 'rw' }
leave(queue, seen, id)
if unrecoverable then
    for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, 99)) do
        tell(waiter, 'F ' .. waiter) -- each waiter asks, and is told that the lock is not recoverable
    end
elseif not (robust and redis.call('GET', mark) == 'unrecoverable') then
    let_in(lock, nil, now)
end
return answer(mine and DONE or GONE)
