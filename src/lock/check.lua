-- check.lua - does a hold stand?
--
-- KEYS[1]  hash, the mutex
-- ARGV[1]  owner id
-- returns  { 1 it does | 0 it does not, server us }
-- resend   harmless: reads only
local time = redis.call('TIME')
return { redis.call('HEXISTS', KEYS[1], ARGV[1]), time[1] * 1000000 + time[2] }
