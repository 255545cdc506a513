-- permit_renew.lua - set the lease of permits again; the first renewal of a claim confirms it
--
-- uses:     leased
-- keys:     permits zset                this key alone, so that it works while a cluster moves it
-- sent:     id deadline_us lease_ms parts
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
return answer(renew(permits, id, parts, lease_ms, now) and DONE or GONE)
