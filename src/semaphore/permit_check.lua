-- permit_check.lua - do leased permits stand, and for how long?
--
-- uses:     leased
-- keys:     permits zset                see permit_take.lua
-- sent:     id                          waiter's id, or the permit's own
-- verdicts: TAKEN left_ms ms
--           GONE ended number           1: its lease had ended
-- resend:   harmless: reads only
local permit = permit_of(id)
local live, ends = is_live(permits, permit, now)
if live then
    return answer(TAKEN, ends - math.floor(now / 1000))
end
return answer(GONE, ends and 1 or 0)
