-- undrain.lua - give back what a drain took whose answer got lost
-- uses: whole once queue number order java counted
--
-- KEYS[1]  string, free permits
-- KEYS[2]  sorted set, grants that are not confirmed
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  hash, last request of each owner (once-record)
-- ARGV[1]  owner and ARGV[2] number of the drain, finished from now on
-- ARGV[3]  letters: j shared with Redisson  ARGV[4] Redisson's channel  ARGV[5] lease of a claim, ms
-- returns  { 1 given back | 0 there was nothing, server us }
-- resend   harmless: the once-record then says that the drain is finished, which also stops a late copy of it
local name, claims, queue, seen, once = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, number = ARGV[1], ARGV[2]
local now = server_time()
local value = number_in(name)
local done = once_answer(once, owner, number)
if done == '0' or done == ONCE_OVERTAKEN then
    return { 0, now }
end
redis.call('EXPIRE', once, 60) -- first: then a server out of memory allows the rest
local back = value and tonumber(done or '0') or 0 -- nothing goes back to a semaphore that was deleted
local function record()
    once_keep(once, owner, number, 0)
end
if back > 0 then
    redis.call('INCRBY', name, string.format('%.0f', back))
    whole(record, function()
        redis.call('DECRBY', name, string.format('%.0f', back))
    end)
else
    record()
end
if not value then
    return { 0, now }
end
local free = value + reclaim(name, claims, now, queue, seen) + back
pass_on(name, claims, queue, seen, free, now, tonumber(ARGV[5]), ARGV[4], string.find(ARGV[3], 'j', 1, true))
return { back > 0 and 1 or 0, now }
