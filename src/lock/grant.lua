-- grant.lua - what it takes to make somebody the holder of a mutex
--
-- uses:     rollback token
--
-- mark  string, of robust mutexes only: "<owner id> <token> <1: its previous holder died>", or
--       "unrecoverable". An absent hold beside a mark means that the holder died.

-- Java's turn: for some milliseconds after a release that was left to it, C clients that share with
-- Java queue rather than take. The turn is kept among the signs of life, as 'java', and evicted like them.
local JAVAS_TURN_MS = 10

local function begin_javas_turn(seen, now)
    redis.call('ZADD', seen, math.floor(now / 1000) + JAVAS_TURN_MS, 'java')
end

-- Milliseconds left of Java's turn, 0 when there is none.
local function javas_turn_left(seen, now)
    local ends = tonumber(redis.call('ZSCORE', seen, 'java') or '') or 0
    return math.max(ends - math.floor(now / 1000), 0)
end

-- The mark is written first: no holder is without one, and a mark whose holder was never written
-- reports one death too many, which is safe.
local function own(name, mark, id, lease_ms, token, died, robust)
    if robust then
        redis.call('SET', mark, id .. ' ' .. string.format('%.0f', token) .. ' ' .. died)
    end
    redis.call('HSET', name, id, 1)
    expire(name, lease_ms, function()
        redis.call('HDEL', name, id)
    end)
end

-- Write `id` as holder; returns its token and whether its previous holder died. The token comes first: a
-- holder that finds itself there later asks for the last one.
local function grant(name, token_key, mark, id, lease_ms, now, robust, shared)
    local token, died = next_token(token_key, now, shared), 0
    if robust and redis.call('EXISTS', mark) == 1 then
        died = 1
    end
    own(name, mark, id, lease_ms, token, died, robust)
    return token, died
end
