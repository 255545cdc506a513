-- info.lua - who holds a read-write lock, for how long, who waits
--
-- uses:     holders
-- keys:     holders zset, token string, queue zset, mark string    see acquire.lua
-- verdicts: TAKEN token number, waiters number, waiting_writers number, recoverable number,
--               left_ms ms, readers number, writer text                       until the last lease ends; '': readers
--           FREE token number, waiters number, waiting_writers number, recoverable number
-- resend:   harmless: reads only
local now_ms = math.floor(now / 1000)
local waiters, waiting_writers = 0, 0
for _, id in ipairs(redis.call('ZRANGE', queue, 0, 9999)) do
    waiters = waiters + 1
    waiting_writers = waiting_writers + (is_writer(id) and 1 or 0)
end
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
local readers = redis.call('ZCOUNT', holders, '(' .. now_ms, '+inf')
return answer(TAKEN, last, waiters, waiting_writers, recoverable, left, readers, '')
