-- permit_extend.lua - let a permit end no earlier than a lease from now, though it is not of the client that asks
--
-- uses:     leased
-- keys:     permits zset                see permit_take.lua
-- args:     least_ms ms                 it is never shortened: the client that took it believes in its lease
-- sent:     id deadline_us              the permit's own
-- verdicts: DONE LATE
--           GONE ended number           1: its lease had ended
-- resend:   harmless: never creates, never revives, never shortens
local permit, n = permit_of(id)
local live, ends = is_live(permits, permit, now)
if not live then
    return answer(GONE, ends and 1 or 0)
end
if ends < math.floor(now / 1000) + least_ms then
    renew_parts(permits, permit, n, least_ms, now)
end
return answer(DONE)
