-- order.lua - free permits go to those who wait, in order of arrival, and to nobody behind one who wants more
-- uses:     queue
--
-- A waiter's id says how many it wants: "<client id>:<owner>:<acquisition>:<n>", with a fifth part for a
-- permit that has an explicit id.

local function wanted(id)
    return tonumber(string.match(id, '^%x+:%w+:%d+:(%d+)')) or 1
end

-- Grant as long as `free` permits are enough for the first waiter that listens. The asker, which needs no
-- message, only leaves the queue: the caller takes its permits. A client that does not listen is asked
-- once; its waiters keep their places and hold up nobody.
--
-- claim_ms                   how long a claim lasts if the waiter does not say
-- grant(id, n, claim, sign)  writes the grant, returns the words of its message; `sign` is its sign of life
-- undo(id, n)                takes that back
-- ended                      see claim_for() of queue.lua; nil: who claims writes down itself what ended
-- returns                    how many are still free; whether the asker gets its own; whether somebody waits for more
local function serve(queue, seen, asker, free, now, claim_ms, grant, undo, ended)
    local noted, passed, size, got = {}, 0, 4, false
    local round = { queue = queue, seen = seen, now = now, turn_ms = TURN_MS, deaf = {}, turned = false }
    function round.take(id, its_claim_ms, sign)
        return grant(id, wanted(id), its_claim_ms, sign)
    end
    function round.undo(id)
        undo(id, wanted(id))
    end
    while free > 0 do
        local batch, signs = next_batch(queue, seen, passed, size, now)
        for i, id in ipairs(batch) do
            local n, has, claim = wanted(id), false, nil
            if id ~= asker and free > 0 and not round.deaf[client_of(id)] then
                claim = claim_for(batch, signs, i, now, claim_ms, ended)
            end
            if n > free and (id == asker or claim and tell(id, 'P')) then
                return free, got, true
            elseif id == asker then
                got, has = true, 'asked'
            elseif claim and n > free then
                round.deaf[client_of(id)] = true
            elseif claim then
                has = offer(round, batch, signs, i, claim)
            end
            if has then
                if has == true and ended then
                    note_claim(seen, batch, signs, i, size, now, noted)
                end
                leave_granted(queue, seen, id)
                free = free - n
            else
                passed = passed + 1
            end
        end
        if #batch < size then
            break
        end
        size = 32
    end
    return free, got, false
end

-- The number in a string; nil when there is no key; false when it is no number.
local function number_in(key)
    local text = redis.call('GET', key)
    if not text then
        return nil
    end
    return string.match(text, '^-?%d+$') and tonumber(text) or false
end

local function no_number()
    return redis.error_reply('WRONGTYPE the key holds no whole number')
end
