-- set.lua - set the number of permits, if there is none
--
-- uses:     counted number idempotent whole
-- keys:     name string, claims zset, queue zset, alive hash, once hash, total string      see take.lua
-- args:     n number
--           channel text                Redisson's
-- flags:    shared anonymous            anonymous: none is made
-- sent:     id nth deadline_us
-- verdicts: DONE OVERTAKEN LATE ABSENT
--           PRESENT total number
-- resend:   harmless: the idempotency record knows the answer
local done = idempotent_answer(once, id, nth)
if done == '1' then
    return answer(DONE)
elseif done == IDEMPOTENT_OVERTAKEN then
    return answer(OVERTAKEN)
elseif done == 'absent' then
    return answer(ABSENT)
elseif done then
    return answer(PRESENT, present_total(done))
end
local value = number_in(name)
if value then
    local all = total_in(total, value)
    idempotent_record(once, id, nth, present_result(all), now)
    return answer(PRESENT, all)
end
if anonymous then
    idempotent_record(once, id, nth, 'absent', now)
    return answer(ABSENT)
end
set_number(name, claims, total, n) -- recorded or not, there is a number from now on
idempotent_record(once, id, nth, 1, now)
pass_on(name, claims, queue, alive, n, now, channel, shared)
return answer(DONE)
