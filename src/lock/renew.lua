-- renew.lua - set the lease of a hold again; the first renewal of a claim confirms it
--
-- uses:     grant
-- keys:     mutex hash                  this key alone, so that it works while a cluster moves it
-- args:     channel text                Redisson's: its waiters sleep by the lease they knew, and hear of a shorter one
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
return answer(renew(mutex, channel, id, lease_ms) and DONE or GONE)
