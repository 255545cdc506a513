-- leave.lua - give up waiting for permits, and give back what was granted or taken meanwhile
--
-- uses:     counted number queue idempotent rollback
-- keys:     name string, claims zset, queue zset, alive hash, once hash, total string      see take.lua
-- args:     channel text                Redisson's
-- flags:    shared
-- sent:     id                          as take.lua had it; finished from now on
-- verdicts: DONE GONE                   GONE: there was nothing
-- resend:   harmless: the idempotency record then says that the request is finished, which also stops a late copy
--           of the request itself
local owner, nth, n = taker_of(id)
local value = number_in(name)
local done, taken = idempotent_answer(once, owner, nth)
if done == '0' then
    return answer(GONE)
end
redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
local claimed = value and redis.call('ZSCORE', claims, id)
-- nothing goes back to a semaphore that was deleted, nor to the next one of its name
local back = claimed or done == '1' and value and not was_deleted(total, taken, now)
if done ~= IDEMPOTENT_OVERTAKEN then -- after a later request only the waiter's own id is looked for
    idempotent_record(once, owner, nth, 0, now)
end
if claimed then
    unclaim(name, claims, id, n)
elseif back then
    do_or_undo(function()
        redis.call('INCRBY', name, n)
    end, function()
        idempotent_record(once, owner, nth, 1, now)
    end)
end
leave(queue, alive, id, now)
if value then
    local free = value + reclaim(name, claims, now) + (back and n or 0)
    pass_on(name, claims, queue, alive, free, now, channel, shared)
end
return answer(back and DONE or GONE)
