-- redisson.lua - is somebody of Redisson's among those who listen to its channel?
--
-- A client of ours that listens to a channel of Redisson's listens to another one beside it, by the same connection,
-- of which Redisson knows nothing. So who hears more of the one than of the other is Redisson, whichever clients come,
-- go and crash.

local function heard_by(channel, message)
    local heard = redis.pcall('PUBLISH', channel, message)
    return type(heard) == 'number' and heard or 0
end

-- Publish it on Redisson's channel; did Redisson hear it?
local function tell_redisson(channel, message)
    local heard = heard_by(channel, message)
    return heard > 0 and heard > heard_by('latchkey:client:' .. channel, message)
end
