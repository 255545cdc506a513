-- count.lua - how many permits are free, granted and not confirmed, waited for
--
-- uses:     admission number whole
-- keys:     name string                 free permits
--           claims zset                 waiter's id -> until when it may confirm its grant, see counted.lua
--           queue zset                  who waits
--           total string                see whole.lua
-- args:     initial number              permits that the first request would set, 0: none
-- verdicts: DONE free number, held number, waiters number, total number, exists number
-- reply:    lk__semcount semaphore/semaphore.h
-- resend:   harmless: reads only
local value = number_in(name)
local now_ms = math.floor(now / 1000)
local waiters = redis.call('ZCARD', queue)
if not value then -- claims without a number are left of a semaphore that was deleted
    return answer(DONE, initial, 0, waiters, initial, 0)
end
local all = total_in(total, value)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', claims, '-inf', now_ms)) do
    value = value + wanted(id)
end
return answer(DONE, value, redis.call('ZCOUNT', claims, '(' .. now_ms, '+inf'), waiters, all, 1)
