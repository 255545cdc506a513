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

-- Give a key its end that was just written, or may have existed, and then has an end that others rely on: set only a
-- later one. `alone`: nobody relies on it. No key is left without an end.
local function lengthen_or_drop(key, ms, alone)
    local done
    if alone then
        done = redis.pcall('PEXPIRE', key, ms)
    else
        done = redis.pcall('PEXPIRE', key, ms, 'GT')
    end
    if done == 1 then
        return
    end
    local endless = redis.call('PTTL', key) == -1
    if done == 0 and endless then
        done = redis.pcall('PEXPIRE', key, ms)
    end
    if type(done) == 'table' then
        if endless then
            redis.call('DEL', key)
        end
        error(done)
    end
end
