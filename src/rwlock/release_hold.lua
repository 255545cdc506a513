-- release_hold.lua - give a read-write lock back, and no more: who waits finds that out by asking, or by release.lua later
--
-- uses:     holders
-- keys:     holders zset                this key alone, so that it works while a cluster moves it
-- sent:     id                          with its mode, finished from now on
-- instead:  release 2
-- verdicts: DONE GONE                   GONE: it was not a holder
-- resend:   harmless: a finished id is nowhere
look(holders, now)
local mine = held_as(holders, id)
if not mine then
    return answer(GONE)
end
redis.call('ZREM', holders, mine)
return answer(DONE)
