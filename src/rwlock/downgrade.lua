-- downgrade.lua - make a writer a reader without a gap; the readers next in the queue come in, too
-- uses: whole token queue share
--
-- KEYS[1]  sorted set, owner id -> end of its lease: who holds it
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- ARGV[1]  the writer's owner id  ARGV[2] lease of a claim, ms
-- ARGV[3]  letters: r robust, j token shared with Redisson, R prefer readers, W writers
-- ARGV[4]  lease, ms  ARGV[5] deadline of this request, server us
-- ARGV[6]  1: robust and unrepaired: the mark stays, and tells each who comes until a writer repairs it
-- returns  { 1 it is a reader | 0 no such hold | -1 past the deadline, server us }
-- resend   harmless: finds the reader
local lock = new_lock(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[3])
local id = ARGV[1]
lock.claim_ms = tonumber(ARGV[2])
local now = server_time()
if now > tonumber(ARGV[5]) then
    return { -1, now }
end
look(lock, now)
local mine = held_as(lock, id)
if not mine then
    return { 0, now }
end
-- First what a server out of memory allows; then it allows the rest. Sent again, it may find other readers.
redis.call('PEXPIRE', lock.holders, math.max(left_ms(lock, now), tonumber(ARGV[4])))
put(lock, string.sub(id, 1, -2) .. 'r', tonumber(ARGV[4]), now)
if not is_writer(mine) then
    return { 1, now }
end
redis.call('ZREM', lock.holders, id)
redis.call('PEXPIRE', lock.holders, left_ms(lock, now))
if lock.robust and tonumber(ARGV[6]) ~= 1 then
    redis.call('DEL', lock.mark)
end
if redis.call('EXISTS', lock.queue) == 1 then
    serve(lock, nil, now)
end
return { 1, now }
