-- set.lua - give a latch a count, if it has none
--
-- uses:     idempotent number latch_state
-- keys:     count string, mark string, once hash      see countdown.lua
-- args:     n number
--           channel text                Redisson's
-- sent:     id nth deadline_us
-- verdicts: DONE PRESENT OVERTAKEN LATE
-- resend:   harmless: the idempotency record answers
local done = idempotent_answer(once, id, nth)
if done then
    return answer(done == IDEMPOTENT_OVERTAKEN and OVERTAKEN or DONE)
end
if number_in(count) then
    return answer(PRESENT)
end

redis.call('SET', count, n) -- first, as Redisson does it; Redisson leaves no mark
mark_set(mark)
idempotent_record(once, id, nth, 1, now)
publish(channel, '1')
return answer(DONE)
