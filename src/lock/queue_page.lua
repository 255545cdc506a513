-- queue_page.lua - a page of the wait queue, the next one first
--
-- KEYS[1]  sorted set, the wait queue
-- KEYS[2]  sorted set, its liveness
-- ARGV[1]  first place wanted, from 0  ARGV[2] last place wanted
-- returns  { number of waiters, server us, owner ids ... }
-- resend   harmless: reads only
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = { redis.call('ZCOUNT', KEYS[2], math.floor(now / 1000) + 1, '+inf'), now }
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2])) do
    reply[#reply + 1] = id
end
return reply
