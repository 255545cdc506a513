-- signal.lua - move the first waiter of a condition, or all, to the queue of its mutex
--
-- uses:     condition
-- keys:     mutex hash, token string, queue zset, alive hash, mark string,
--           record string, waiting zset, calive hash, moved zset               see wait.lua
-- args:     mine text                   as the caller knows it
-- flags:    robust shared all
-- verdicts: DONE woken number, left number      left: how many wait, where one script may not move or evict all
--           PRESENT found text          they wait with that mutex: nothing was done
-- resend:   wakes one more, which is legal: who wakes looks whether it may go on
local found = redis.call('GET', record)
if not found then
    return answer(DONE, 0, 0)
elseif not is_same(found, mine) then
    return answer(PRESENT, found)
end
local both = { mutex = mutex, token = token, queue = queue, alive = alive, mark = mark, record = record,
               waiting = waiting, calive = calive, moved = moved }
local woken
if all then
    woken = wake_all(both, now)
else
    woken = wake_one(both, now) and 1 or 0
end
if woken > 0 then
    hand_to_first(both, nil, now, now_text, robust, shared)
end
return answer(DONE, woken, all and redis.call('ZCARD', waiting) or 0)
