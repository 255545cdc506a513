-- renew.lua - set the lease of one holder again, and nobody else's; the first renewal of a claim confirms it
--
-- uses:     holders
-- keys:     holders zset                this key alone, so that it works while a cluster moves it
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
-- batch:    many holds are renewed at one time
local mine, ends = held_as(holders, id)
if not mine or ends <= math.floor(now / 1000) then
    return answer(GONE)
end
local lasts_ms = outlast(holders, lease_ms, now)
redis.call('ZADD', holders, 'XX', math.floor(now / 1000) + lease_ms, mine)
if lasts_ms > lease_ms then -- perhaps because of the lease that is renewed
    end_with_last(holders, now)
end
return answer(DONE)
