-- countdown.lua - lower a latch; at zero it opens and everybody wakes
--
-- uses:     idempotent number rollback latch_state
-- keys:     count string                gone at zero
--           mark string                 how the last count ended, see latch_state.lua
--           once hash                   the idempotency record
-- args:     by digits
--           channel text                Redisson's
-- flags:    anonymous
-- sent:     id nth deadline_us
-- verdicts: DONE ABSENT OVERTAKEN LATE
-- resend:   harmless: the idempotency record answers
local done = idempotent_answer(once, id, nth)
if done then
    return answer(done == IDEMPOTENT_OVERTAKEN and OVERTAKEN or done == 'absent' and ABSENT or DONE)
end
local left = number_in(count)
if not left then
    idempotent_record(once, id, nth, 'absent', now)
    return answer(ABSENT)
end

redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
if left > by + 0 then
    redis.call('DECRBY', count, by)
    do_or_undo(function()
        idempotent_record(once, id, nth, left - by, now)
    end, function()
        redis.call('INCRBY', count, by)
    end)
    return answer(DONE)
end
end_count(count, mark, 'opened', now, anonymous)
idempotent_record(once, id, nth, 0, now)
publish(channel, '0')
return answer(DONE)
