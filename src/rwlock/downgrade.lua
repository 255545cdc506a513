-- downgrade.lua - make a writer a reader without a gap; the readers next in the queue come in, too
--
-- uses:     admit holders
-- keys:     holders zset, token string, readers zset, writers zset, alive hash, mark string    see acquire.lua
-- flags:    robust shared readers_first writers_first phase_fair
-- sent:     id deadline_us lease_ms
--           unrepaired                  then the mark stays, and tells each who comes until a writer repairs it
-- verdicts: DONE GONE LATE
-- resend:   harmless: finds the reader
look(holders, now)
local mine = held_as(holders, id)
if not mine then
    return answer(GONE)
end
outlast(holders, lease_ms, now)
put(holders, string.sub(id, 1, -2) .. 'r', lease_ms, now)
if not is_writer(mine) then
    return answer(DONE) -- a resend: there may be other readers by now
end
redis.call('ZREM', holders, id)
if robust and not unrepaired then
    redis.call('DEL', mark)
end
if redis.call('EXISTS', readers, writers) == 0 then
    return answer(DONE)
end
local lock = { holders = holders, token = token, readers = readers, writers = writers, alive = alive, mark = mark,
    now_text = now_text, robust = robust, shared = shared,
    order = readers_first and 'reader' or writers_first and 'writer' or phase_fair and 'phase' or 'fair' }
let_in(lock, nil, now)
return answer(DONE)
