-- info.lua - who holds a mutex, for how long, who waits
--
-- uses:     holder
-- keys:     mutex hash, token string, queue zset, mark string                  see acquire.lua
-- verdicts: TAKEN token number, waiters number, recoverable number,
--               left_ms ms, holds number, holder text                         left_ms: -1 without an end
--           FREE token number, waiters number, recoverable number
-- resend:   harmless: reads only
local left = redis.call('PTTL', mutex)
if left == -1 and not is_mutex(mutex) then
    return no_mutex()
end
local last = tonumber(redis.call('GET', token) or '') or 0
local waiters = redis.call('ZCARD', queue)
local recoverable = redis.call('GET', mark) == 'unrecoverable' and 0 or 1
if left == -2 then
    return answer(FREE, last, waiters, recoverable)
end
local holder = redis.call('HRANDFIELD', mutex) or ''
local holds = tonumber(redis.call('HGET', mutex, holder) or '') or 0
return answer(TAKEN, last, waiters, recoverable, left, holds, holder)
