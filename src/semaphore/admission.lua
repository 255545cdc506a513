-- admission.lua - free permits go to those who wait, in order of arrival, and to nobody behind one who wants more
--
-- uses:     queue
--
-- A waiter's id says how many it wants: "<client id>:<owner>:<acquisition>:<n>", with a fifth part for a
-- permit that has an explicit id.

local function wanted(id)
    return tonumber(string.match(id, '^%x+:%w+:%d+:(%d+)')) or 1
end

-- What take() of a round asks first, see hand_over() of queue.lua: n of the permits that are `free` in it are set aside
-- for `id`. Returns n; nil: they are too few, `blocked` says so, and nobody behind it gets any; false: likewise, but it
-- does not listen, and holds up nobody. The asker needs no message.
local function set_aside(round, id, n, asker)
    if n <= round.free then
        round.free = round.free - n
        return n
    elseif id == asker or tell(id, 'P') then
        round.blocked = true
        return nil
    end
    round.deaf[client_of(id)] = true
    return false
end
