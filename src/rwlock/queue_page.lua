-- queue_page.lua - a page of those who wait for a read-write lock, in order of arrival
--
-- keys:     readers zset, writers zset
-- args:     first number, last number   places wanted, from 0
-- verdicts: DONE waiters number, ids text...
-- reply:    lk__queuepage object/queue.h
-- resend:   harmless: reads only
local reading = redis.call('ZRANGE', readers, '0', last, 'WITHSCORES')
local writing = redis.call('ZRANGE', writers, '0', last, 'WITHSCORES')
local ids, r, w = {}, 1, 1
for place = 0, math.min(last, (#reading + #writing) / 2 - 1) do
    local id
    if not writing[w] or reading[r] and tonumber(reading[r + 1]) < tonumber(writing[w + 1]) then
        id, r = reading[r], r + 2
    else
        id, w = writing[w], w + 2
    end
    if place >= first then
        ids[#ids + 1] = id
    end
end
return answer(DONE, redis.call('ZCARD', readers) + redis.call('ZCARD', writers), unpack(ids))
