-- permit_count.lua - how many leased permits are free, held, waited for
-- uses: whole queue order leased
--
-- KEYS[1]  sorted set, permits and when they end
-- KEYS[2]  string, how many there are in total
-- KEYS[3]  sorted set, liveness of the wait queue
-- ARGV[1]  total that the first request would set, 0: none
-- returns  { free permits, held ones, waiters, server us, total }
-- resend   harmless: reads only
local now = server_time()
local total = number_in(KEYS[2])
if total == false then
    return no_number()
end
total = total or tonumber(ARGV[1])
local free = free_permits(KEYS[1], total, now)
return { free, total - free, redis.call('ZCOUNT', KEYS[3], '(' .. math.floor(now / 1000), '+inf'), now, total }
