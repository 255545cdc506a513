-- renew.lua - set the lease of a hold again; the first renewal of a claim confirms it
--
-- keys:     mutex hash                  this key alone, so that it works while a cluster moves it
-- args:     channel text                Redisson's: its waiters sleep by the lease they knew, and hear of a shorter one
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
-- batch:    many holds are renewed at one time
if (redis.call('HGET', mutex, id) or '0') == '0' then -- given back, as release.lua has it
    return answer(GONE)
end
local left = redis.call('PTTL', mutex)
redis.call('PEXPIRE', mutex, lease_ms)
if left > lease_ms then
    publish(channel, '0')
end
return answer(DONE)
