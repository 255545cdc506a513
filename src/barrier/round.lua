-- round.lua - the rounds of a barrier
--
-- state    hash: `parties` how many meet, `generation` number of the present round; `first` the first one since the last
--          reset, which ended round `ended`, and `before` the first one since the reset before that; `broken` why the
--          round is broken, "" if it is not
-- parties  sorted set, party -> server milliseconds until which its lease lasts; they wait in the present round
--
-- A round that is over was passed, unless a reset ended it: a party that looks late finds out by these numbers.

local ROUND_LASTS_MS = '86400000' -- so long the server knows of a barrier that nobody comes to

local function client_in(party)
    return string.match(party, '^[^:]*')
end

-- All who wait are told, and who comes is, until a reset. The first command is one that a server out of memory allows. What
-- somebody deleted is not made again.
local function break_round(state, parties, channel, why)
    if redis.call('PEXPIRE', state, ROUND_LASTS_MS) == 1 then
        redis.call('HSET', state, 'broken', why)
    end
    redis.call('DEL', parties)
    publish(channel, '0')
end

-- A party that did not renew its lease is dead, and the round is broken.
local function bury(state, parties, channel, now)
    local dead = redis.call('ZRANGEBYSCORE', parties, 0, math.floor(now / 1000), 'LIMIT', 0, 1)[1]
    if dead then
        break_round(state, parties, channel, 'died ' .. client_in(dead))
    end
    return dead
end

-- A party waits on. Returns whether it waits.
local function renew(parties, id, lease_ms, now)
    local ends = tonumber(redis.call('ZSCORE', parties, id) or '')
    if not ends or ends <= math.floor(now / 1000) then
        return false
    end
    redis.call('PEXPIRE', parties, '86400000')
    redis.call('ZADD', parties, 'XX', math.floor(now / 1000) + lease_ms, id)
    return true
end
