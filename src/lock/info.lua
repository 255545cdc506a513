-- info.lua - who holds a mutex, for how long, who waits
-- uses: holder
--
-- KEYS[1]  hash, the mutex
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- returns  { 1 held | 0 free, ms left | -1 no end, last token, waiters, 1 recoverable, holds, server us, holder }
-- resend   harmless: reads only
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local left = redis.call('PTTL', KEYS[1])
local holder, holds = '', 0
if left == -1 and not is_mutex(KEYS[1]) then
    return no_mutex()
elseif left ~= -2 then
    holder = redis.call('HRANDFIELD', KEYS[1]) or ''
    holds = tonumber(redis.call('HGET', KEYS[1], holder) or '') or 0
end
local waiters = redis.call('ZCOUNT', KEYS[4], math.floor(now / 1000) + 1, '+inf')
return {
    left ~= -2 and 1 or 0, left, tonumber(redis.call('GET', KEYS[2]) or '') or 0, waiters,
    redis.call('GET', KEYS[5]) == 'unrecoverable' and 0 or 1, holds, now, holder,
}
