-- check.lua - does a hold stand?
--
-- uses:     holders
-- keys:     holders zset
-- sent:     id
-- verdicts: TAKEN GONE
-- resend:   harmless: reads only
local mine, ends = held_as(holders, id)
return answer(mine and ends > math.floor(now / 1000) and TAKEN or GONE)
