-- change.lua - set or change how many permits a counting semaphore has in all
--
-- uses:     counted number idempotent rollback whole
-- keys:     name string, claims zset, queue zset, alive hash, once hash, total string      see take.lua
-- args:     n number                    negative for fewer
--           initial number              permits to begin with, 0: leave that to others
--           largest number              total
--           expected number             total, if that is compared
--           channel text                Redisson's
-- flags:    shared anonymous            anonymous: none is made
--           set                         n is the total, if there is none
--           compare                     n is the total, if it is as expected
-- sent:     id nth deadline_us
-- verdicts: DONE OVERTAKEN LATE ABSENT
--           PRESENT total number        to be set, and there is one, or another one than expected
--           IMPOSSIBLE
-- resend:   harmless: the idempotency record knows the answer
local value = number_in(name)
local done = idempotent_answer(once, id, nth)
if done == '1' then
    return answer(DONE)
elseif done == 'absent' then
    return answer(ABSENT)
elseif done and tonumber(done) <= present_result(0) then
    return answer(PRESENT, present_total(done))
elseif done then
    return answer(done == '-3' and IMPOSSIBLE or OVERTAKEN)
elseif anonymous and not value then
    idempotent_record(once, id, nth, 'absent', now)
    return answer(ABSENT)
end
local all = value and total_in(total, value) or initial
if set and value or compare and all ~= expected then
    idempotent_record(once, id, nth, present_result(all), now)
    return answer(PRESENT, all)
end
local new = (set or compare) and n or all + n
local free = (value or initial) + new - all
if n > 0 and new > largest or free < -2147483648 then
    idempotent_record(once, id, nth, -3, now)
    return answer(IMPOSSIBLE)
end

redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
if not value then
    redis.call('DEL', claims) -- left of a semaphore that was deleted
end
redis.call('SET', name, string.format('%.0f', free), 'KEEPTTL')
do_or_undo(function()
    resize_recorded(total, new, once, id, nth, now)
end, function()
    if value then
        redis.call('INCRBY', name, string.format('%.0f', all - new))
    else
        redis.call('DEL', name)
    end
end)
if not value or new > all then
    pass_on(name, claims, queue, alive, free + reclaim(name, claims, now), now, channel, shared)
end
return answer(DONE)
