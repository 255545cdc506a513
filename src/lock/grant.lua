-- grant.lua - what it takes to make somebody the holder of a mutex
--
-- mark  string, of robust mutexes only: "<owner id> <token> <1: its previous holder died>", or
--       "unrecoverable". An absent hold beside a mark means that the holder died.

-- Java's turn: for some milliseconds after a release that was left to it, C clients that share with
-- Java queue rather than take. Kept among the signs of life, as 'java', so that it is swept like them.
local JAVAS_TURN_MS = 10

local function begin_javas_turn(seen, now)
    redis.call('ZADD', seen, math.floor(now / 1000) + JAVAS_TURN_MS, 'java')
end

-- Milliseconds left of it, 0 when it is nobody's turn.
local function javas_turn_left(seen, now)
    local ends = tonumber(redis.call('ZSCORE', seen, 'java') or '') or 0
    return math.max(ends - math.floor(now / 1000), 0)
end

-- Write `id` as holder; returns its token and whether its previous holder died.
local function grant(name, token_key, mark, id, lease_ms, now, robust, shared)
    redis.call('HSET', name, id, 1)
    redis.call('PEXPIRE', name, lease_ms)
    local token, died = next_token(token_key, now, shared), 0
    if robust then
        if redis.call('EXISTS', mark) == 1 then
            died = 1
        end
        redis.call('SET', mark, id .. ' ' .. string.format('%.0f', token) .. ' ' .. died)
    end
    return token, died
end

-- Hand a free mutex to the first waiter that listens. Returns it, or nil.
local function serve(name, token_key, queue, seen, mark, asker, now, claim_ms, robust, shared)
    local token, died, before
    local function take(id)
        if token then -- not the first one that is tried: nothing but the owner changes
            redis.call('HSET', name, id, 1)
            redis.call('PEXPIRE', name, claim_ms)
            if robust then
                redis.call('SET', mark, id .. ' ' .. string.format('%.0f', token) .. ' ' .. died)
            end
        else
            before = robust and redis.call('GET', mark)
            token, died = grant(name, token_key, mark, id, claim_ms, now, robust, shared)
        end
        return string.format('G %s %.0f %d %.0f %d', id, now, claim_ms, token, died)
    end
    local function undo(id)
        redis.call('HDEL', name, id)
        if robust and before then
            redis.call('SET', mark, before)
        elseif robust then
            redis.call('DEL', mark)
        end
    end
    return hand_over(queue, seen, asker, take, undo)
end
