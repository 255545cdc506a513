-- delete.lua - remove a counting semaphore, with what was granted and not confirmed; waiters are told
--
-- uses:     number idempotent rollback farewell whole
-- keys:     name string, claims zset, queue zset, alive hash, once hash, total string      see take.lua
-- sent:     id nth deadline_us
-- verdicts: DONE ABSENT OVERTAKEN LATE
-- resend:   harmless: the idempotency record knows the answer
local done = idempotent_answer(once, id, nth)
if done then
    return answer(done == '1' and DONE or done == '0' and ABSENT or OVERTAKEN)
end
if not number_in(name) then
    idempotent_record(once, id, nth, 0, now)
    return answer(ABSENT)
end
redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
idempotent_record(once, id, nth, 1, now)
do_or_undo(function()
    redis.call('DEL', name, claims) -- at once: a claim would be put back into the next semaphore of that name
end, function()
    idempotent_record(once, id, nth, IDEMPOTENT_OVERTAKEN, now)
end)
redis.call('SET', total, '- ' .. string.format('%.0f', now), 'PX', DELETED_MS)
dismiss(queue, alive)
return answer(DONE)
