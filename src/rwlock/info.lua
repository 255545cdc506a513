-- info.lua - who holds a read-write lock, for how long, who waits
--
-- uses:     holders
-- keys:     holders zset, token string, readers zset, writers zset, mark string    see acquire.lua
-- verdicts: TAKEN token number, waiters number, waiting_writers number, recoverable number,
--               left_ms ms, readers number, writer text                       until the last lease ends; '': readers
--           FREE token number, waiters number, waiting_writers number, recoverable number
-- resend:   harmless: reads only
local now_ms = math.floor(now / 1000)
local waiting_writers = redis.call('ZCARD', writers)
local waiters = redis.call('ZCARD', readers) + waiting_writers
local last = tonumber(redis.call('GET', token) or '') or 0
local recoverable = redis.call('GET', mark) == 'unrecoverable' and 0 or 1
local holder = redis.call('ZRANGEBYSCORE', holders, '(' .. now_ms, '+inf', 'LIMIT', 0, 1)[1]
if not holder then
    return answer(FREE, last, waiters, waiting_writers, recoverable)
end
local left = left_ms(holders, now)
if is_writer(holder) then
    return answer(TAKEN, last, waiters, waiting_writers, recoverable, left, 0, holder)
end
local reading = redis.call('ZCOUNT', holders, '(' .. now_ms, '+inf')
return answer(TAKEN, last, waiters, waiting_writers, recoverable, left, reading, '')
