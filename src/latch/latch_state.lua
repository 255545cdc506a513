-- latch_state.lua - what is known of a latch: its count, and how the one before ended
--
-- uses:     rollback
--
-- count  string, a number: Redisson's layout, gone at zero
-- mark   string, "<opened or deleted> <serial>": how the last count ended; a larger serial for each end.
--        " set" behind it: there was a new count since, or an open latch was deleted. Then it is for those
--        alone who waited before that end.
--        That of an anonymous latch is there, and lasts, as long as the latch: empty before its first end

-- What a mark says, nil or false: there is none. How the last count ended, or nil; its serial, or 0; whether there was
-- a new one since.
local function end_in(text)
    local how, serial, since = string.match(text or '', '^(%l+) (%d+)(.*)$')
    return how, tonumber(serial or '0'), since == ' set'
end

-- End the count. For ten minutes the mark says that it ended, and how; of an anonymous latch, as long as that is used.
local function end_count(count, mark, how, now, anonymous)
    local before = redis.call('GET', mark)
    local _, serial = end_in(before)
    local lasts = anonymous and math.max(redis.call('PTTL', mark), 1) or 600000
    redis.call('SET', mark, string.format('%s %.0f', how, math.max(serial + 1, now)), 'PX', lasts)
    do_or_undo(function()
        redis.call('DEL', count)
    end, function()
        redis.call('SET', mark, before or '', 'KEEPTTL')
    end)
end

-- Did the last count open, and is that to be seen?
local function is_open(mark)
    local how, _, since = end_in(redis.call('GET', mark))
    return how == 'opened' and not since
end

-- Nobody who comes from now on is to see the last end. Threads that still wait for it find it.
local function hide_end(mark)
    local how, serial, since = end_in(redis.call('GET', mark))
    if how and not since then
        redis.call('SET', mark, string.format('%s %.0f set', how, serial), 'KEEPTTL')
    end
end
