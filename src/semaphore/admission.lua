-- admission.lua - free permits go to waiters in order of arrival, and to none after one that wants more than is free
--
-- uses:     queue
--
-- A waiter's id says how many it wants: "<client id>:<owner>:<acquisition>:<n>", with a fifth part for a
-- permit that has an explicit id.

local function wanted(id)
    return tonumber(string.match(id, '^%x+:%w+:%d+:(%d+)')) or 1
end

-- The first waiter, how many it wants, and for how many milliseconds it has been there.
local function first_of(queue, now)
    local first = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
    local since_ms = math.max(math.floor((now - tonumber(first[2])) / 1000), 0)
    return first[1], wanted(first[1]), since_ms
end

-- What is recorded for a request that found another total than it should.
local function present_result(all)
    return -10 - all
end

local function present_total(result)
    return -10 - tonumber(result)
end

-- The first step of take() of a round, see hand_over() of queue.lua: set n of the permits that are `free` in the round
-- aside for `id`. Returns n; nil: there are too few, `blocked` is set, and no waiter after this one gets any; false:
-- there are too few, but this waiter does not listen, and blocks nobody. The asker needs no message, nor does a `quiet` one.
local function set_aside(round, id, n, asker, quiet)
    if n <= round.free then
        round.free = round.free - n
        return n
    elseif id == asker or quiet or tell(id, 'P') then
        round.blocked = true
        return nil
    end
    return false
end
