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
