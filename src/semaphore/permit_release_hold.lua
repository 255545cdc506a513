-- permit_release_hold.lua - give leased permits back, and no more: who waits finds them by asking, or by permit_release.lua later
--
-- uses:     leased
-- keys:     permits zset                this key alone, so that it works while a cluster moves it
-- args:     kept number                 parts that are not given back
-- sent:     id                          waiter's id, or the permit's own
-- instead:  permit_release 2
-- verdicts: DONE
--           GONE ended number           1: its lease had ended
-- resend:   harmless: the parts are there once
local permit, n = permit_of(id)
local live, ends = is_live(permits, permit, now)
unlend(permits, permit, kept, n)
if live then
    return answer(DONE)
end
return answer(GONE, ends and 1 or 0)
