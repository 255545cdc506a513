-- redisson.lua - is somebody of Redisson's among those who listen to its channel? Then it has a turn now and then
--
-- uses:     rollback
--
-- A client of ours that subscribes to a channel of Redisson's subscribes to a second one, on the same connection, that
-- Redisson does not know. So more receivers on the first than on the second are Redisson's, whichever clients come, go
-- and crash.

local function heard_by(channel, message)
    local heard = publish(channel, message)
    return type(heard) == 'number' and heard or 0
end

-- Who listens to Redisson's channel and is not of ours, by how the server counts; nil: the user may not ask.
local function others_of(count, channel)
    local heard = redis.pcall('PUBSUB', count, channel, 'latchkey:client:' .. channel)
    return not heard.err and heard[2] - heard[4] or nil
end

-- Publish `message` on Redisson's channel; did Redisson hear it? Where nobody of Redisson's listens nothing is published:
-- each message wakes all of ours. Who may not ask for that has the server count them by messages.
local function tell_redisson(channel, message)
    local others, sharded = others_of('NUMSUB', channel), others_of('SHARDNUMSUB', channel)
    if others == 0 and sharded == 0 then
        return false
    end
    local heard = heard_by(channel, message)
    return heard > 0 and heard > heard_by('latchkey:client:' .. channel, message)
end

-- Java's turn: for some milliseconds after a release that was left to it, C clients that share with Java queue rather than
-- take. It is kept beside the clients that wait, as 'java', and deleted like them.
local JAVAS_TURN_MS = 10

local function begin_javas_turn(alive, now, lasts_ms)
    redis.call('HSET', alive, 'java', string.format('%.0f', math.floor(now / 1000) + JAVAS_TURN_MS) .. ' 0 0 0')
    lengthen_or_drop(alive, lasts_ms)
end

-- Milliseconds left of Java's turn, 0 when there is none. Of more than it lasts the clock went back.
local function javas_turn_left(alive, now)
    local ends = tonumber(string.match(redis.call('HGET', alive, 'java') or '', '^%d+') or '0')
    local left = ends - math.floor(now / 1000)
    return left > 0 and left <= JAVAS_TURN_MS and left or 0
end

-- Something is free, and nobody of ours waits: tell Redisson, whose turn it is if it listens. Who is nearer to the server
-- would have it again each time before Java could ask, so scripts do this one time in sixteen.
local function leave_to_redisson(alive, channel, message, now)
    if tell_redisson(channel, message) then
        begin_javas_turn(alive, now, JAVAS_TURN_MS)
    end
end
