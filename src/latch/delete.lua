-- delete.lua - remove a latch; waiters are told
--
-- uses:     idempotent number latch_state
-- keys:     count string, mark string, once hash      see countdown.lua
-- args:     channel text                Redisson's
-- flags:    anonymous
-- sent:     id nth deadline_us
-- verdicts: DONE ABSENT OVERTAKEN LATE
-- resend:   harmless: the idempotency record answers
local done = idempotent_answer(once, id, nth)
if done then
    return answer(done == IDEMPOTENT_OVERTAKEN and OVERTAKEN or done == 'absent' and ABSENT or DONE)
end
local left = number_in(count)
if not left and not is_open(mark) then
    idempotent_record(once, id, nth, 'absent', now)
    return answer(ABSENT)
end

redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
if left then
    end_count(count, mark, 'deleted', now, anonymous)
else
    hide_end(mark)
end
idempotent_record(once, id, nth, 1, now)
if left then
    publish(channel, '1')
end
return answer(DONE)
