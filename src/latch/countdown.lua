-- countdown.lua - lower a latch; at zero it opens and everybody wakes
--
-- uses:     once number whole gate
-- keys:     count string                gone at zero
--           mark string                 how the last count ended, see gate.lua
--           once hash                   the once-record
-- args:     by number
--           channel text                Redisson's
-- sent:     id nth deadline_us
-- verdicts: DONE ABSENT OVERTAKEN LATE
-- resend:   harmless: the once-record answers
local done = once_answer(once, id, nth)
if done then
    return answer(done == ONCE_OVERTAKEN and OVERTAKEN or DONE)
end
local left = number_in(count)
if not left then
    return answer(ABSENT)
end

redis.call('EXPIRE', once, ONCE_SECONDS) -- first: then a server out of memory allows the rest
if left > by then
    redis.call('DECRBY', count, by)
    whole(function()
        once_record(once, id, nth, left - by, now)
    end, function()
        redis.call('INCRBY', count, by)
    end)
    return answer(DONE)
end
end_count(count, mark, 'opened', now)
once_record(once, id, nth, 0, now)
redis.pcall('PUBLISH', channel, '0')
return answer(DONE)
