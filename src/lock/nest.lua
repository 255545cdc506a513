-- nest.lua - set how often a holder holds its mutex; confirms the hold
--
-- KEYS[1]  hash, the mutex
-- ARGV[1]  owner id  ARGV[2] holds, absolute  ARGV[3] lease, ms  ARGV[4] deadline of this request, server us
-- returns  { 1 set | 0 no such hold | -1 past the deadline, server us }
-- resend   harmless: the number is absolute
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[4]) then
    return { -1, now }
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return { 0, now }
end
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[3])) -- first: then a server out of memory allows the rest
redis.call('HSET', KEYS[1], ARGV[1], tonumber(ARGV[2]))
return { 1, now }
