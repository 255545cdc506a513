-- set.lua - set the number of permits, if there is none
--
-- uses:     counted number idempotent
-- keys:     name string, claims zset, queue zset, seen zset, once hash      see take.lua
-- args:     n number
--           claim_ms ms                 lease of a claim
--           channel text                Redisson's
-- flags:    shared
-- sent:     id nth deadline_us
-- verdicts: DONE PRESENT OVERTAKEN LATE
-- resend:   harmless: the idempotency record knows the answer
local done = idempotent_answer(once, id, nth)
if done then
    return answer(done == '1' and DONE or done == '0' and PRESENT or OVERTAKEN)
end
if number_in(name) then
    idempotent_record(once, id, nth, 0, now)
    return answer(PRESENT)
end
set_number(name, claims, n) -- recorded or not, there is a number from now on
idempotent_record(once, id, nth, 1, now)
pass_on(name, claims, queue, seen, n, now, claim_ms, channel, shared)
return answer(DONE)
