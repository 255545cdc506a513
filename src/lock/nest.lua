-- nest.lua - set how often a holder holds its mutex; confirms the hold
--
-- keys:     mutex hash                  this key alone, so that it works while a cluster moves it
-- args:     holds digits                absolute
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: the number is absolute
if (redis.call('HGET', mutex, id) or '0') == '0' then -- given back, as release.lua has it
    return answer(GONE)
end
redis.call('PEXPIRE', mutex, lease_ms) -- first: then a server out of memory allows the rest
redis.call('HSET', mutex, id, holds)
return answer(DONE)
