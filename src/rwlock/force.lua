-- force.lua - take a read-write lock away from all who hold it
-- uses: whole token queue share
--
-- KEYS[1]  sorted set, owner id -> end of its lease: who holds it
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- ARGV[1]  lease of a claim, ms
-- ARGV[2]  letters: r robust, j token shared with Redisson, R prefer readers, W writers
-- ARGV[3]  deadline of this request, server us
-- returns  { holders it had | -1 past the deadline, server us }
-- resend   takes it from the next holders as well: not resent
local lock = new_lock(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[2])
lock.claim_ms = tonumber(ARGV[1])
local now = server_time()
if now > tonumber(ARGV[3]) then
    return { -1, now }
end
look(lock, now)
local held = redis.call('ZCARD', lock.holders) -- an error, and nothing changed, when it is no lock
redis.call('DEL', lock.holders)
if lock.robust and redis.call('GET', lock.mark) == 'unrecoverable' then
    redis.call('DEL', lock.mark) -- by an operator's word it is in order again
end
next_token(lock.token, now, lock.shared)
serve(lock, nil, now)
return { held, now }
