-- leave.lua - give up waiting for permits, and give back what was granted or taken meanwhile
-- uses: whole once queue number order java counted
--
-- KEYS[1]  string, free permits
-- KEYS[2]  sorted set, grants that are not confirmed
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  hash, last request of each owner (once-record)
-- ARGV[1]  waiter's id, finished from now on  ARGV[2] owner and ARGV[3] number of the request that took
-- ARGV[4]  n  ARGV[5] letters: j shared with Redisson  ARGV[6] Redisson's channel  ARGV[7] lease of a claim, ms
-- returns  { 1 given back | 0 there was nothing, server us }
-- resend   harmless: the once-record then says that the request is finished, which also stops a late copy
--          of the request itself
local name, claims, queue, seen, once = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, owner, number, n = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local now = server_time()
local value = number_in(name)
local done = once_answer(once, owner, number)
if done == '0' then
    return { 0, now }
end
redis.call('EXPIRE', once, 60) -- first: then a server out of memory allows the rest
local claimed = value and redis.call('ZSCORE', claims, id)
local back = claimed or done == '1' and value -- nothing goes back to a semaphore that was deleted
if done ~= ONCE_OVERTAKEN then -- then only what bears the waiter's own id is looked for
    once_keep(once, owner, number, 0)
end
if claimed then
    unclaim(name, claims, id, n)
elseif back then
    whole(function()
        redis.call('INCRBY', name, n)
    end, function()
        once_keep(once, owner, number, 1)
    end)
end
leave(queue, seen, id)
if not value then
    return { 0, now }
end
local free = value + reclaim(name, claims, now, queue, seen) + (back and n or 0)
pass_on(name, claims, queue, seen, free, now, tonumber(ARGV[7]), ARGV[6], string.find(ARGV[5], 'j', 1, true))
return { back and 1 or 0, now }
