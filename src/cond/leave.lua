-- leave.lua - wait for a condition no longer: a signal that was meant for this waiter goes to the next
--
-- uses:     condition
-- keys:     mutex hash, token string, queue zset, alive hash, mark string,
--           record string, waiting zset, calive hash, moved zset               see wait.lua
-- args:     mine text, channel text
-- flags:    robust shared
-- sent:     id
-- verdicts: DONE GONE                   GONE: it did not wait for the condition
-- resend:   harmless: wakes one more at most, which is legal
local both = { mutex = mutex, token = token, queue = queue, alive = alive, mark = mark, record = record,
               waiting = waiting, calive = calive, moved = moved, mine = mine }
local waited = redis.call('ZREM', waiting, id) == 1 -- first what a server out of memory allows
local mine_now = redis.call('HDEL', mutex, id) == 1
if mine_now and robust and string.sub(redis.call('GET', mark) or '', -2) ~= ' 1' then -- of a death the next one is told
    redis.call('DEL', mark)
end
leave(queue, alive, id, now)
if not waited and is_ours(both) then
    wake_one(both, now)
end
redis.call('ZREM', moved, id) -- behind it: a script that ends in between has the signal go on later
end_condition(both)
if not hand_to_first(both, nil, now, now_text, robust, shared) and mine_now then
    publish(channel, '0')
end
return answer(waited and DONE or GONE)
