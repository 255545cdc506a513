-- permit_delete.lua - remove a leased semaphore with all its permits; waiters are told
--
-- uses:     leased number idempotent rollback farewell
-- keys:     permits zset, total string, queue zset, alive hash, once hash      see permit_total.lua
-- sent:     id nth deadline_us
-- verdicts: DONE ABSENT OVERTAKEN LATE
-- resend:   harmless: the idempotency record knows the answer
local done = idempotent_answer(once, id, nth)
if done then
    return answer(done == '1' and DONE or done == '0' and ABSENT or OVERTAKEN)
end
if not number_in(total) then
    idempotent_record(once, id, nth, 0, now)
    return answer(ABSENT)
end
redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
idempotent_record(once, id, nth, 1, now)
do_or_undo(function()
    redis.call('DEL', total)
end, function()
    idempotent_record(once, id, nth, IDEMPOTENT_OVERTAKEN, now)
end)
end_all(permits, now)
dismiss(queue, alive)
return answer(DONE)
