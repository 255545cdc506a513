-- delete.lua - remove a latch; those who wait are told so
-- uses: whole once gate
--
-- KEYS[1]  string, the count
-- KEYS[2]  string, the mark: how the last count ended
-- KEYS[3]  hash, last request of each owner (once-record)
-- ARGV[1]  owner  ARGV[2] number of this request
-- ARGV[3]  Redisson's channel  ARGV[4] unused
-- ARGV[5]  deadline of this request, server us
-- returns  { 1 deleted | -2 no latch | -1 past the deadline | -3 the key is no count | -5 overtaken,
--            server us }
-- resend   harmless: the once-record answers
local name, mark, once = KEYS[1], KEYS[2], KEYS[3]
local now = server_time()
local done = once_answer(once, ARGV[1], ARGV[2])
if done then
    return { tonumber(done), now }
end
if now > tonumber(ARGV[5]) then
    return { -1, now }
end
local count = count_of(name)
if not count then
    return { count == nil and -2 or -3, now }
end

redis.call('PEXPIRE', once, 60000) -- first: then a server out of memory allows the rest
end_count(name, mark, 'deleted', now)
once_keep(once, ARGV[1], ARGV[2], 1)
redis.pcall('PUBLISH', ARGV[3], '1')
return { 1, now }
