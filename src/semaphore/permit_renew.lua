-- permit_renew.lua - set the lease of permits again; the first renewal of a claim confirms it
--
-- uses:     leased
-- keys:     permits zset                this key alone, so that it works while a cluster moves it
-- sent:     id deadline_us lease_ms parts
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
-- batch:    many holds are renewed at one time
local permit = permit_of(id)
if not is_live(permits, permit, now) then
    return answer(GONE)
end
renew_parts(permits, permit, parts, lease_ms, now)
return answer(DONE)
