-- resize.lua - set how many permits a counting semaphore has in all, if they are as many as the caller expects
--
-- uses:     counted number idempotent rollback whole
-- keys:     name string, claims zset, queue zset, alive hash, once hash, total string      see take.lua
-- args:     expected number             total, if it is to be set
--           n number                    total from now on
--           initial number              permits to begin with, 0: leave that to others
--           channel text                Redisson's
-- flags:    shared anonymous            anonymous: none is made
-- sent:     id nth deadline_us
-- verdicts: DONE OVERTAKEN LATE ABSENT
--           PRESENT total number        another one than expected
-- resend:   harmless: the idempotency record knows the answer
local value = number_in(name)
local done = idempotent_answer(once, id, nth)
if done == '1' then
    return answer(DONE)
elseif done == IDEMPOTENT_OVERTAKEN then
    return answer(OVERTAKEN)
elseif done == 'absent' then
    return answer(ABSENT)
elseif done then
    return answer(PRESENT, present_total(done))
end
if anonymous and not value then
    idempotent_record(once, id, nth, 'absent', now)
    return answer(ABSENT)
end
local all = value and total_in(total, value) or initial
if all ~= expected then
    idempotent_record(once, id, nth, present_result(all), now)
    return answer(PRESENT, all)
end

redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
if not value then
    redis.call('DEL', claims) -- left of a semaphore that was deleted
end
local free = (value or initial) + n - all
redis.call('SET', name, string.format('%.0f', free), 'KEEPTTL')
do_or_undo(function()
    resize_recorded(total, n, once, id, nth, now)
end, function()
    if value then
        redis.call('INCRBY', name, string.format('%.0f', all - n))
    else
        redis.call('DEL', name)
    end
end)
if n > all then
    pass_on(name, claims, queue, alive, free + reclaim(name, claims, now), now, channel, shared)
end
return answer(DONE)
