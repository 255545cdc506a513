-- renew.lua - set the lease of one holder again, and nobody else's; the first renewal of a claim confirms it
--
-- KEYS[1]  sorted set, who holds the lock: this key alone, so that it works while a cluster moves it
-- ARGV[1]  owner id with its mode  ARGV[2] lease, ms  ARGV[3] deadline of this request, server us
-- returns  { 1 renewed | 0 no such hold | -1 past the deadline, server us }
-- resend   harmless; never creates, never revives
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[3]) then
    return { -1, now }
end
local now_ms, lease_ms, id = math.floor(now / 1000), tonumber(ARGV[2]), ARGV[1]
local ends = redis.call('ZSCORE', KEYS[1], id)
if not ends then -- a writer may have been downgraded
    id = string.sub(id, 1, -2) .. 'r'
    ends = redis.call('ZSCORE', KEYS[1], id)
end
if not ends or tonumber(ends) <= now_ms then
    return { 0, now }
end
local function last_ms()
    return tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]) - now_ms
end
redis.call('PEXPIRE', KEYS[1], math.max(last_ms(), lease_ms)) -- first: then a server out of memory allows the rest
redis.call('ZADD', KEYS[1], 'XX', now_ms + lease_ms, id)
redis.call('PEXPIRE', KEYS[1], last_ms())
return { 1, now }
