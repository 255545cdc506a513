-- token.lua - fencing tokens: each larger than all before it
--
-- Tokens are at least the server's microseconds, so they go on rising when the key is lost with the server's memory. A
-- key of ours ends after a day without a grant. One that Redisson shares must not end, as Redisson's INCR would start
-- at 1 again: GT never gives an end to a key that has none.

-- Issue the next token of `key`; `shared` keeps it without an end.
local function next_token(key, now, shared)
    local last = tonumber(redis.call('GET', key) or '')
    local token = now
    if last and last >= token then
        token = last + 1
    end
    local text = string.format('%.0f', token)
    if not last and not shared then
        redis.call('SET', key, text, 'EX', 86400)
        return token
    end
    redis.call('SET', key, text, 'KEEPTTL')
    if not shared then
        redis.call('EXPIRE', key, 86400, 'GT')
    end
    return token
end

local function last_token(key)
    return tonumber(redis.call('GET', key) or '') or 0
end
