-- set.lua - set the number of permits, if there is none
-- uses: whole once queue number order java counted
--
-- KEYS[1]  string, free permits
-- KEYS[2]  sorted set, grants that are not confirmed
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  hash, last request of each owner (once-record)
-- ARGV[1]  owner and ARGV[2] number of this request, for the once-record  ARGV[3] n
-- ARGV[4]  letters: j shared with Redisson  ARGV[5] Redisson's channel  ARGV[6] lease of a claim, ms
-- ARGV[7]  deadline of this request, server us
-- returns  { 1 set | 0 there is a number already | -1 past the deadline | -5 overtaken, server us }
-- resend   harmless: the once-record knows the answer
local name, claims, queue, seen, once = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, number, n = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = server_time()
if now > tonumber(ARGV[7]) then
    return { -1, now }
end
local done = once_answer(once, owner, number)
if done then
    return { tonumber(done), now }
end
local value = number_in(name)
if value then
    return { once_keep(once, owner, number, 0), now }
end
set_number(name, claims, n) -- and recorded or not, there is a number from now on
once_keep(once, owner, number, 1)
pass_on(name, claims, queue, seen, n, now, tonumber(ARGV[6]), ARGV[5], string.find(ARGV[4], 'j', 1, true))
return { 1, now }
