-- renew.lua - set the lease of one holder again, and nobody else's; the first renewal of a claim confirms it
--
-- uses:     holders
-- keys:     holders zset                this key alone, so that it works while a cluster moves it
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
return answer(renew(holders, id, lease_ms, now) and DONE or GONE)
