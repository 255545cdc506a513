-- redisson.lua - is somebody of Redisson's among those who listen to its channel?
--
-- A client of ours that subscribes to a channel of Redisson's subscribes to a second one, on the same connection, that
-- Redisson does not know. So more receivers on the first than on the second are Redisson's, whichever clients come, go
-- and crash.

local function heard_by(channel, message)
    local heard = publish(channel, message)
    return type(heard) == 'number' and heard or 0
end

-- Publish `message` on Redisson's channel; did Redisson hear it?
local function tell_redisson(channel, message)
    local heard = heard_by(channel, message)
    return heard > 0 and heard > heard_by('latchkey:client:' .. channel, message)
end
