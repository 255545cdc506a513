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
