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
-- grant(id, n)  writes the grant, returns the words of its message
-- undo(id, n)   takes that back
-- returns       how many are still free; whether the asker gets its own; whether somebody waits for more
local function serve(queue, seen, asker, free, grant, undo)
    local deaf, passed, size, got = {}, 0, 4, false
    while free > 0 do
        local batch = redis.call('ZRANGE', queue, passed, passed + size - 1)
        for _, id in ipairs(batch) do
            local n, client = wanted(id), string.sub(id, 1, 32)
            local heard = false
            if id == asker or not deaf[client] then
                if n > free then
                    if id == asker or tell(id, 'P') then
                        return free, got, true
                    end
                elseif id == asker then
                    got, heard = true, true
                else
                    heard = tell(id, grant(id, n))
                    if not heard then
                        undo(id, n)
                    end
                end
            end
            if heard then
                leave(queue, seen, id)
                free = free - n
            else
                deaf[client] = true
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
