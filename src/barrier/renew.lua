-- renew.lua - a party goes on waiting
--
-- keys:     parties zset                this key alone, so that it works while a cluster moves it
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
-- batch:    many parties are renewed at one time
local ends = tonumber(redis.call('ZSCORE', parties, id) or '')
if not ends or ends <= math.floor(now / 1000) then
    return answer(GONE)
end
redis.call('PEXPIRE', parties, '86400000')
redis.call('ZADD', parties, 'XX', math.floor(now / 1000) + lease_ms, id)
return answer(DONE)
