-- countdown.lua - lower a latch; at zero it opens and everybody wakes
-- uses: whole once gate
--
-- KEYS[1]  string, the count
-- KEYS[2]  string, the mark: how the last count ended
-- KEYS[3]  hash, last request of each owner (once-record)
-- ARGV[1]  owner  ARGV[2] number of this request
-- ARGV[3]  Redisson's channel  ARGV[4] by how much
-- ARGV[5]  deadline of this request, server us
-- returns  { count left, 0 open | -2 no latch | -1 past the deadline | -3 the key is no count |
--            -5 overtaken, server us }
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
local left = math.max(count - tonumber(ARGV[4]), 0)
local function record()
    once_keep(once, ARGV[1], ARGV[2], left)
end
if left > 0 then
    redis.call('DECRBY', name, ARGV[4])
    whole(record, function()
        redis.call('INCRBY', name, ARGV[4])
    end)
else
    end_count(name, mark, 'opened', now)
    record()
end
if left == 0 then
    redis.pcall('PUBLISH', ARGV[3], '0')
end
return { left, now }
