-- give.lua - more permits, or fewer
-- uses: whole once queue number order java counted
--
-- KEYS[1]  string, free permits
-- KEYS[2]  sorted set, grants that are not confirmed
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  hash, last request of each owner (once-record)
-- ARGV[1]  owner and ARGV[2] number of this request, for the once-record
-- ARGV[3]  n, negative for fewer  ARGV[4] permits to begin with, 0: leave that to others
-- ARGV[5]  letters: j shared with Redisson  ARGV[6] Redisson's channel  ARGV[7] lease of a claim, ms
-- ARGV[8]  deadline of this request, server us
-- returns  { 1 done | -3 too many | -1 past the deadline | -5 overtaken, server us }
-- resend   harmless: the once-record knows the answer
local name, claims, queue, seen, once = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, number, n = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = server_time()
if now > tonumber(ARGV[8]) then
    return { -1, now }
end
local value = number_in(name)
local done = once_answer(once, owner, number)
if done then
    return { tonumber(done), now }
end
local sum = (value or tonumber(ARGV[4])) + n
if sum > 2147483647 or sum < -2147483648 then
    return { once_keep(once, owner, number, -3), now }
end
redis.call('EXPIRE', once, 60) -- first: then a server out of memory allows the rest
if not value then
    redis.call('DEL', claims) -- of a semaphore that was deleted
end
redis.call('SET', name, string.format('%.0f', sum), 'KEEPTTL')
whole(function()
    once_keep(once, owner, number, 1)
end, function()
    redis.call('DECRBY', name, n)
end)
sum = sum + reclaim(name, claims, now, queue, seen)
if n > 0 then
    pass_on(name, claims, queue, seen, sum, now, tonumber(ARGV[7]), ARGV[6], string.find(ARGV[5], 'j', 1, true))
end
return { 1, now }
