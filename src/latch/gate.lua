-- gate.lua - what is known of a latch: its count, and how the one before ended
-- uses:     whole
--
-- name  string, the count: Redisson's layout, gone at zero
-- mark  string, "<opened or deleted> <serial>": how the last count ended; a larger serial for each end.
--       " set" behind it: there was a new count since

local function server_time()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- The count; nil: there is none; false: the key holds something else. An error for keys of another type.
local function count_of(name)
    local text = redis.call('GET', name)
    if not text then
        return nil
    end
    return string.match(text, '^-?%d+$') and tonumber(text) or false
end

-- How the last count ended, or nil; its serial, or 0; whether there was a new one since.
local function last_end(mark)
    local how, serial, since = string.match(redis.call('GET', mark) or '', '^(%l+) (%d+)(.*)$')
    return how, tonumber(serial or '0'), since == ' set'
end

-- The count ends. For ten minutes it is known that it did, and how.
local function end_count(name, mark, how, now)
    local before, _, serial = redis.call('GET', mark), last_end(mark)
    redis.call('SET', mark, string.format('%s %.0f', how, math.max(serial + 1, now)), 'PX', 600000)
    whole(function()
        redis.call('DEL', name)
    end, function()
        redis.call('SET', mark, before or '', 'KEEPTTL')
    end)
end

-- There is a new count. Those who still wait for the last one find its end.
local function mark_set(mark)
    local how, serial, since = last_end(mark)
    if how and not since then
        redis.call('SET', mark, string.format('%s %.0f set', how, serial), 'KEEPTTL')
    end
end
