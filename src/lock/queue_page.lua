-- queue_page.lua - a page of the wait queue, the next one first
--
-- keys:     queue zset, seen zset
-- args:     first number, last number   places wanted, from 0
-- verdicts: DONE waiters number, ids text...
-- resend:   harmless: reads only
local waiters = redis.call('ZCOUNT', seen, math.floor(now / 1000) + 1, '+inf')
return answer(DONE, waiters, unpack(redis.call('ZRANGE', queue, first, last)))
