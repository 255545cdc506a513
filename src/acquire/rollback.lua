-- rollback.lua - steps that take more than one command, done as a whole or not at all
--
-- The server takes nothing back when a command fails in the middle of a script, such as one that an access
-- rule (ACL) does not permit. So the script does.

-- Do `step`; when it fails, undo what it did, and fail.
local function do_or_undo(step, take_back)
    local done, why = pcall(step)
    if not done then
        take_back()
        error(type(why) == 'string' and { err = why } or why) -- a string would lose its code
    end
end

-- Give a key that was just written its end.
local function expire(key, ms, take_back)
    do_or_undo(function()
        redis.call('PEXPIRE', key, ms)
    end, take_back)
end

-- Likewise for a key that may have existed, and then has an end that others rely on: set only a later one. `alone`:
-- nobody relies on it.
local function lengthen_or_drop(key, ms, alone)
    do_or_undo(function()
        if alone then
            redis.call('PEXPIRE', key, ms)
        elseif redis.call('PEXPIRE', key, ms, 'GT') == 0 and redis.call('PTTL', key) == -1 then
            redis.call('PEXPIRE', key, ms)
        end
    end, function()
        if redis.call('PTTL', key) == -1 then
            redis.call('DEL', key)
        end
    end)
end
