-- order.lua - free permits go to those who wait, in order of arrival, and to nobody behind one who wants more
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
    local deaf, noted, passed, size, got = {}, {}, 0, 4, false
    while free > 0 do
        local batch, signs = next_batch(queue, seen, passed, size, now)
        for i, id in ipairs(batch) do
            local n, client = wanted(id), client_of(id)
            local heard, claim = false, nil
            if id == asker then
                claim = claim_ms
            elseif free > 0 and not deaf[client] then
                claim = claim_for(batch, signs, i, now, claim_ms, ended)
            end
            if claim then
                if n > free then
                    if id == asker or tell(id, 'P') then
                        return free, got, true
                    end
                elseif id == asker then
                    got, heard = true, true
                else
                    heard = tell(id, grant(id, n, claim, tonumber(signs[i])))
                    if heard and ended then
                        note_claim(seen, batch, signs, i, size, now, noted)
                    elseif not heard then
                        undo(id, n)
                    end
                end
            end
            if heard then
                leave_granted(queue, seen, id)
                free = free - n
            else
                deaf[client] = deaf[client] or claim ~= nil
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
