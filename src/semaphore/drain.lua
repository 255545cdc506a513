-- drain.lua - take all permits that are free
--
-- uses:     counted number idempotent
-- keys:     name string, claims zset, once hash, total string      see take.lua
-- args:     initial number              permits to begin with, 0: leave that to others
-- sent:     id nth deadline_us
-- verdicts: DONE taken number
--           OVERTAKEN LATE
-- resend:   harmless: the idempotency record knows how many they were
local done = idempotent_answer(once, id, nth)
if done == IDEMPOTENT_OVERTAKEN then
    return answer(OVERTAKEN)
elseif done then
    return answer(DONE, tonumber(done))
end
local value = number_in(name)
if value then
    value = value + reclaim(name, claims, now)
elseif initial > 0 then
    set_number(name, claims, total, initial)
end
local taken = math.max(value or initial, 0)
if taken > 0 then
    take_recorded(name, string.format('%.0f', taken), once, id, nth, taken, now)
else
    idempotent_record(once, id, nth, 0, now)
end
return answer(DONE, taken)
