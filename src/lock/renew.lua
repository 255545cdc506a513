-- renew.lua - set the lease of a hold again; the first renewal of a claim confirms it
--
-- KEYS[1]  hash, the mutex: this key alone, so that it works while a cluster moves it
-- ARGV[1]  owner id  ARGV[2] lease, ms  ARGV[3] deadline of this request, server us
-- ARGV[4]  Redisson's channel: its waiters sleep by the lease they knew, and are told when it gets shorter
-- returns  { 1 renewed | 0 no such hold | -1 past the deadline, server us }
-- resend   harmless; never creates, never revives
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[3]) then
    return { -1, now }
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return { 0, now }
end
local left = redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[2]))
if left > tonumber(ARGV[2]) then
    redis.pcall('PUBLISH', ARGV[4], '0')
end
return { 1, now }
