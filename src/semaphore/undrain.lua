-- undrain.lua - give back what a drain took whose answer got lost
--
-- uses:     counted number idempotent rollback
-- keys:     name string, claims zset, queue zset, alive hash, once hash, total string      see take.lua
-- args:     channel text                Redisson's
-- flags:    shared
-- sent:     id nth                      of the drain, finished from now on
-- verdicts: DONE GONE                   GONE: there was nothing
-- resend:   harmless: the idempotency record then says that the drain is finished, which also stops a late copy of it
local value = number_in(name)
local done, taken = idempotent_answer(once, id, nth)
if done == '0' or done == IDEMPOTENT_OVERTAKEN then
    return answer(GONE)
end
redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
-- nothing goes back to a semaphore that was deleted, nor to the next one of its name
local back = value and done and not was_deleted(total, taken, now) and tonumber(done) or 0
if back > 0 then
    redis.call('INCRBY', name, string.format('%.0f', back))
    do_or_undo(function()
        idempotent_record(once, id, nth, 0, now)
    end, function()
        redis.call('DECRBY', name, string.format('%.0f', back))
    end)
else
    idempotent_record(once, id, nth, 0, now)
end
if value then
    local free = value + reclaim(name, claims, now) + back
    pass_on(name, claims, queue, alive, free, now, channel, shared)
end
return answer(back > 0 and DONE or GONE)
