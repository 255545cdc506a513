-- info.lua - who holds a read-write lock, for how long, who waits
--
-- KEYS[1]  sorted set, owner id -> end of its lease: who holds it
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- returns  { readers, 1 a writer | 0 none, ms until the last lease ends, last token, waiters, of them writers,
--            1 recoverable, server us, the writer }
-- resend   harmless: reads only
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local function is_writer(id)
    return string.sub(id, -2) == ':w'
end
local first = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now_ms, '+inf', 'LIMIT', 0, 1)[1]
local count, left = redis.call('ZCOUNT', KEYS[1], '(' .. now_ms, '+inf'), 0
if first then
    left = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]) - now_ms
end
local writer = first and is_writer(first) and first
local waiters, writers = 0, 0
for _, id in ipairs(redis.call('ZRANGE', KEYS[3], 0, 9999)) do
    if (tonumber(redis.call('ZSCORE', KEYS[4], id) or '') or 0) > now_ms then
        waiters = waiters + 1
        writers = writers + (is_writer(id) and 1 or 0)
    end
end
return {
    writer and 0 or count, writer and 1 or 0, left, tonumber(redis.call('GET', KEYS[2]) or '') or 0, waiters, writers,
    redis.call('GET', KEYS[5]) == 'unrecoverable' and 0 or 1, now, writer or '',
}
