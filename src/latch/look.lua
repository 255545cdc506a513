-- look.lua - is a latch open?
--
-- uses:     number latch_state
-- keys:     count string, mark string                 see countdown.lua
-- verdicts: DONE ended number, serial number, since number, left number
--           ABSENT ended number, serial number, since number
-- resend:   harmless: reads only

-- ended   how the last count ended: 1 it opened, 2 it was deleted, 0 that is not known
-- serial  the serial of that end
-- since   1: there was a new count since, or the open latch was deleted
local how, serial, since = end_in(redis.call('GET', mark))
local ended, left = how == 'opened' and 1 or how == 'deleted' and 2 or 0, number_in(count)
if left then
    return answer(DONE, ended, serial, since and 1 or 0, math.max(left, 0))
end
return answer(ABSENT, ended, serial, since and 1 or 0)
