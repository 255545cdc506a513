-- renew.lua - set the lease of a run again
--
-- uses:     runner
-- keys:     run string                  this key alone, so that it works while a cluster moves it
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
return answer(renew(run, id, lease_ms) and DONE or GONE)
