-- force.lua - take a mutex away from whoever holds it
--
-- uses:     serve holder
-- keys:     mutex hash, token string, queue zset, alive hash, mark string      see acquire.lua
-- args:     channel text                Redisson's
-- flags:    robust shared
-- sent:     deadline_us
-- verdicts: DONE FREE LATE
-- resend:   takes it from the next holder as well: not resent
if redis.call('TYPE', mutex).ok ~= 'none' and not is_mutex(mutex) then -- fails for a key of another type
    return no_mutex()
end
local before = redis.call('GET', mark) -- likewise
local held = redis.call('DEL', mutex)
local marks = robust or before -- who takes it away may not know that it is robust
if before == 'unrecoverable' then
    redis.call('DEL', mark) -- an operator says that it is in order again
end
next_token(token, now, now_text, shared)
if not serve(mutex, token, queue, alive, mark, nil, now, now_text, marks, shared) then
    publish(channel, '0')
end
return answer(held == 1 and DONE or FREE)
