-- set.lua - give a latch a count, if it has none or that is to be replaced
--
-- uses:     idempotent number latch_state
-- keys:     count string, mark string, once hash      see countdown.lua
-- args:     n digits
--           ttl_ms ms                   the count ends after so long; 0: never
--           channel text                Redisson's
-- flags:    replace anonymous           anonymous: the count lasts as long as the mark
-- sent:     id nth deadline_us
-- verdicts: DONE PRESENT OVERTAKEN LATE
--           ABSENT                      an anonymous one, and it is over
-- resend:   harmless: the idempotency record answers
local done = idempotent_answer(once, id, nth)
if done == '1' then
    return answer(DONE)
elseif done then
    return answer(done == 'present' and PRESENT or done == 'absent' and ABSENT or OVERTAKEN)
end
local present = number_in(count)
if present and not replace then
    idempotent_record(once, id, nth, 'present', now)
    return answer(PRESENT)
end

local lasts_ms = anonymous and redis.call('PTTL', mark) or ttl_ms
if anonymous and lasts_ms <= 0 then
    idempotent_record(once, id, nth, 'absent', now)
    return answer(ABSENT)
end

if lasts_ms > 0 then -- first, as Redisson does it; Redisson leaves no mark
    redis.call('SET', count, n, 'PX', lasts_ms)
else
    redis.call('SET', count, n)
end
if not present then
    hide_end(mark)
end
idempotent_record(once, id, nth, 1, now)
if not present then -- who waits for a count waits on
    publish(channel, '1')
end
return answer(DONE)
