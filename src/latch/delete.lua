-- delete.lua - remove a latch; those who wait are told so
--
-- uses:     once number gate
-- keys:     count string, mark string, once hash      see countdown.lua
-- args:     channel text                Redisson's
-- sent:     id nth deadline_us
-- verdicts: DONE ABSENT OVERTAKEN LATE
-- resend:   harmless: the once-record answers
local done = once_answer(once, id, nth)
if done then
    return answer(done == ONCE_OVERTAKEN and OVERTAKEN or DONE)
end
if not number_in(count) then
    return answer(ABSENT)
end

redis.call('EXPIRE', once, ONCE_SECONDS) -- first: then a server out of memory allows the rest
end_count(count, mark, 'deleted', now)
once_record(once, id, nth, 1, now)
redis.pcall('PUBLISH', channel, '1')
return answer(DONE)
