-- force.lua - take a mutex away from whoever holds it
-- uses: whole token queue grant holder
--
-- KEYS[1]  hash, the mutex
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- ARGV[1]  lease of a claim, ms  ARGV[2] letters: r robust, j shared with Redisson
-- ARGV[3]  Redisson's channel  ARGV[4] deadline of this request, server us
-- returns  { 1 somebody held it | 0 nobody did | -1 past the deadline, server us }
-- resend   takes it from the next holder as well: not resent
local name, token_key, queue, seen, mark = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local robust, shared = string.find(ARGV[2], 'r', 1, true) ~= nil, string.find(ARGV[2], 'j', 1, true) ~= nil
local now = server_time()
if now > tonumber(ARGV[4]) then
    return { -1, now }
end
if redis.call('TYPE', name).ok ~= 'none' and not is_mutex(name) then -- an error for a key of another type
    return no_mutex()
end
local held = redis.call('DEL', name)
if robust and redis.call('GET', mark) == 'unrecoverable' then
    redis.call('DEL', mark) -- by an operator's word it is in order again
end
next_token(token_key, now, shared)
if not serve(name, token_key, queue, seen, mark, nil, now, tonumber(ARGV[1]), robust, shared) then
    redis.pcall('PUBLISH', ARGV[3], '0')
end
return { held, now }
