-- release.lua - give a read-write lock back, give up waiting for it, or give back what was granted meanwhile
-- uses: whole token queue share
--
-- KEYS[1]  sorted set, owner id -> end of its lease: who holds it
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- ARGV[1]  owner id with its mode, finished from now on  ARGV[2] lease of a claim, ms
-- ARGV[3]  letters: r robust, j token shared with Redisson, R prefer readers, W writers
-- ARGV[4]  not used  ARGV[5] 1: robust and unrepaired, counts for a writer
-- returns  { 1 it was a holder | 0 it was not, server us }
-- resend   harmless: a finished id is nowhere
local lock = new_lock(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[3])
local id = ARGV[1]
lock.claim_ms = tonumber(ARGV[2])
local now = server_time()

look(lock, now)
local mine, unrecoverable = held_as(lock, id), false
if mine then
    redis.call('ZREM', lock.holders, mine) -- first: then a server out of memory allows the rest
    redis.call('PEXPIRE', lock.holders, left_ms(lock, now))
    if lock.robust and is_writer(mine) then
        unrecoverable = tonumber(ARGV[5]) == 1
        if unrecoverable then
            redis.call('SET', lock.mark, 'unrecoverable')
        else
            redis.call('DEL', lock.mark)
        end
    end
end

if redis.call('EXISTS', lock.queue) == 1 then
    leave(lock.queue, lock.seen, id)
    if unrecoverable then
        for _, waiter in ipairs(redis.call('ZRANGE', lock.queue, 0, 99)) do
            tell(waiter, 'F ' .. waiter) -- each asks, and hears that it is not recoverable
        end
    elseif not (lock.robust and redis.call('GET', lock.mark) == 'unrecoverable') then
        serve(lock, nil, now)
    end
end
return { mine and 1 or 0, now }
