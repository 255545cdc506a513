-- grant.lua - what it takes to make somebody the holder of a mutex
--
-- uses:     token
--
-- mark  string, of robust mutexes only: "<owner id> <token> <1: its previous holder died>", or
--       "unrecoverable". An absent hold beside a mark means that the holder died.

-- The mark is written first: no holder is without one, and a mark whose holder was never written
-- reports one death too many, which is safe.
local function own(name, mark, id, lease_ms, token_text, died, robust)
    if robust then
        redis.call('SET', mark, id .. ' ' .. token_text .. (died and ' 1' or ' 0'))
    end
    redis.call('HSET', name, id, '1')
    local ends = redis.pcall('PEXPIRE', name, lease_ms)
    if type(ends) == 'table' then
        redis.call('HDEL', name, id)
        error(ends)
    end
end

-- Write `id` as holder, whose predecessor may have `died`; returns the digits of its token. The token comes first: a holder
-- that finds itself there later asks for the last one.
local function grant(name, token_key, mark, id, lease_ms, now, now_text, died, robust, shared)
    local token = next_token(token_key, now, now_text, shared)
    own(name, mark, id, lease_ms, token, died, robust)
    return token
end

-- Set the lease of a hold again. Returns whether there is such a hold.
local function renew(name, channel, id, lease_ms)
    if (redis.call('HGET', name, id) or '0') == '0' then -- given back, as release.lua has it
        return false
    end
    local left = redis.call('PTTL', name)
    redis.call('PEXPIRE', name, lease_ms)
    if left > lease_ms + 0 then
        publish(channel, '0')
    end
    return true
end
