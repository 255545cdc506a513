-- give.lua - permits become free
--
-- uses:     counted number idempotent redisson rollback
-- keys:     name string, claims zset, queue zset, alive hash, once hash, total string      see take.lua
-- args:     n number
--           initial number              permits to begin with, 0: leave that to others
--           most number                 permits that may be free
--           channel text                Redisson's
-- flags:    shared anonymous            anonymous: none is made
-- sent:     id nth deadline_us
-- verdicts: DONE IMPOSSIBLE OVERTAKEN LATE
--           ABSENT                      an anonymous one, and it is over
-- resend:   harmless: the idempotency record knows the answer
local value = number_in(name)
local done, at = idempotent_answer(once, id, nth)
local usual = value and not done and value + n <= most and idempotent_lasts(at, now)
if usual and redis.call('EXISTS', claims, queue) == 0 and not (shared and now % 16 == 0) then -- most: nobody waits
    redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
    local sum = redis.call('INCRBY', name, n)
    local failed = idempotent_write(once, id, nth, '1', now_text)
    if failed then
        redis.call('DECRBY', name, n)
        error(failed)
    elseif sum > 0 then
        publish(channel, sum)
    end
    return brief(DONE)
end

local given = false
if usual and value == 0 and not (shared or anonymous) then -- most of those that somebody waits for
    given = give_first(name, claims, queue, alive, once, id, nth, n, now, now_text)
    if given then
        return brief(DONE)
    end
end

if given == nil then
    pass_on(name, claims, queue, alive, n, now, channel, shared)
    return answer(DONE)
elseif done then
    return answer(done == '1' and DONE or done == '-3' and IMPOSSIBLE or done == 'absent' and ABSENT or OVERTAKEN)
end
if anonymous and not value then
    idempotent_record(once, id, nth, 'absent', now)
    return answer(ABSENT)
end
local sum = (value or initial) + n
if sum > most then
    idempotent_record(once, id, nth, -3, now)
    return answer(IMPOSSIBLE)
end
redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
if not value then
    redis.call('DEL', claims) -- left of a semaphore that was deleted
end
redis.call('SET', name, string.format('%.0f', sum), 'KEEPTTL')
do_or_undo(function()
    if value then
        idempotent_record(once, id, nth, 1, now)
    else
        resize_recorded(total, initial > 0 and initial or nil, once, id, nth, now)
    end
end, function()
    redis.call('DECRBY', name, n)
end)
local told = sum > 0 and string.format('%.0f', sum)
local unwanted = redis.call('EXISTS', claims, queue) == 0
if unwanted and not (shared and told and now % 16 == 0) then
    if told then
        publish(channel, told)
    end
    return answer(DONE)
end
if unwanted then
    leave_to_redisson(alive, channel, told, now)
    return answer(DONE)
end

pass_on(name, claims, queue, alive, sum + reclaim(name, claims, now), now, channel, shared)
return answer(DONE)
