-- renew.lua - a party goes on waiting
--
-- uses:     round
-- keys:     parties zset                this key alone, so that it works while a cluster moves it
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
return answer(renew(parties, id, lease_ms, now) and DONE or GONE)
