-- count.lua - how many permits are free, granted and not confirmed, waited for
-- uses: whole queue order
--
-- KEYS[1]  string, free permits
-- KEYS[2]  sorted set, grants that are not confirmed
-- KEYS[3]  sorted set, liveness of the wait queue
-- ARGV[1]  permits that the first request would set, 0: none
-- returns  { free permits, grants that are not confirmed, waiters, server us }
-- resend   harmless: reads only
local now = server_time()
local value = number_in(KEYS[1])
if value == false then
    return no_number()
end
local now_ms = math.floor(now / 1000)
local waiters = redis.call('ZCOUNT', KEYS[3], '(' .. now_ms, '+inf')
if not value then -- claims that may be there are of a semaphore that was deleted
    return { tonumber(ARGV[1]), 0, waiters, now }
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms)) do
    value = value + wanted(id)
end
return { value, redis.call('ZCOUNT', KEYS[2], '(' .. now_ms, '+inf'), waiters, now }
