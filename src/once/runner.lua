-- runner.lua - who runs what is to be done once
--
-- run   string, "<id> <token>", with the lease of the run

-- The id and the token's digits of a text, false: there is none; nil: it says nothing.
local function runner_in(text)
    return string.match(text or '', '^(%S+) (%d+)$')
end

local function is_runner(run, id)
    return runner_in(redis.call('GET', run)) == id
end

-- Returns whether it is the runner.
local function renew(run, id, lease_ms)
    if not is_runner(run, id) then
        return false
    end
    redis.call('PEXPIRE', run, lease_ms)
    return true
end
