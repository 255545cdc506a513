-- permit_total.lua - set or change how many leased permits there are
-- uses: whole once queue number order leased
--
-- KEYS[1]  sorted set, permits and when they end
-- KEYS[2]  string, how many there are in total
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  hash, last request of each owner (once-record)
-- ARGV[1]  owner and ARGV[2] number of this request, for the once-record
-- ARGV[3]  n, negative for fewer  ARGV[4] total to begin with, 0: leave that to others
-- ARGV[5]  letters: s set, only if there is none  ARGV[6] lease of a claim, ms  ARGV[7] largest total
-- ARGV[8]  deadline of this request, server us
-- returns  { 1 done | 0 there is a number already | -1 past the deadline | -3 too many | -4 below 0 |
--            -5 overtaken, server us }
-- resend   harmless: the once-record knows the answer
local permits, total_key, queue, seen, once = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, number, n = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = server_time()
if now > tonumber(ARGV[8]) then
    return { -1, now }
end
local total = number_in(total_key)
local done = once_answer(once, owner, number)
if done then
    return { tonumber(done), now }
end
if string.find(ARGV[5], 's', 1, true) then
    if total then
        return { once_keep(once, owner, number, 0), now }
    end
else
    n = (total or tonumber(ARGV[4])) + n
end
if n > tonumber(ARGV[7]) or n < 0 then
    return { once_keep(once, owner, number, n < 0 and -4 or -3), now }
end
redis.call('EXPIRE', once, 60) -- first: then a server out of memory allows the rest
redis.call('SET', total_key, string.format('%.0f', n))
whole(function()
    once_keep(once, owner, number, 1)
end, function()
    if total then
        redis.call('SET', total_key, string.format('%.0f', total))
    else
        redis.call('DEL', total_key)
    end
end)
lend_out(permits, queue, seen, nil, n, now, tonumber(ARGV[6]))
return { 1, now }
