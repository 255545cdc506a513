-- force.lua - take a read-write lock away from all who hold it
--
-- uses:     admit holders token
-- keys:     holders zset, token string, readers zset, writers zset, alive hash, mark string    see acquire.lua
-- flags:    robust shared readers_first writers_first phase_fair
-- sent:     deadline_us
-- verdicts: DONE FREE LATE
-- resend:   takes it from the next holders as well: not resent
local holder = look(holders, now) -- fails, before anything is changed, when the key is no lock
local before = redis.call('GET', mark) -- likewise
redis.call('DEL', holders)
if before == 'unrecoverable' then
    redis.call('DEL', mark) -- an operator says that it is in order again
end
next_token(token, now, now_text, shared)
-- Who takes it away may not know that it is robust.
local lock = { holders = holders, token = token, readers = readers, writers = writers, alive = alive, mark = mark,
    now_text = now_text, robust = robust or before, shared = shared,
    order = readers_first and 'reader' or writers_first and 'writer' or phase_fair and 'phase' or 'fair' }
let_in(lock, nil, now)
return answer(holder and DONE or FREE)
