-- check.lua - does a hold stand?
--
-- KEYS[1]  sorted set, owner id -> end of its lease: who holds the lock
-- ARGV[1]  owner id with its mode
-- returns  { 1 it does | 0 it does not, server us }
-- resend   harmless: reads only
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reader = string.sub(ARGV[1], 1, -2) .. 'r' -- what a downgraded writer is
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1]) or redis.call('ZSCORE', KEYS[1], reader)
return { ends and tonumber(ends) > math.floor(now / 1000) and 1 or 0, now }
