-- token.lua - fencing tokens: each larger than all before it
--
-- Tokens are at least the server's microseconds, so they go on rising when the key is lost with the server's memory. A
-- key of ours ends when there was no grant for a day, less an hour at most: only the first grant of an hour sets its end
-- anew. One that Redisson shares must not end, as Redisson's INCR would start at 1 again: GT never gives an end to a key
-- that has none.

-- Issue the next token of `key`; returns its digits. `shared` keeps the key without an end. Nearly always the token
-- is the time, `now_text`, so that is written while the last one is read; where the last one was not below it, the key
-- has the lower one until the next command, which is a second writing or takes the first one back.
local function next_token(key, now, now_text, shared)
    local TOKEN_LASTS_S, TOKEN_HOUR_US = 86400, 3600000000 -- here they cost the server less than above
    local last = redis.call('SET', key, now_text, 'KEEPTTL', 'GET')
    local before = tonumber(last or '')
    if before and before >= now then
        local text = string.format('%.0f', before + 1)
        local written = redis.pcall('SET', key, text, 'KEEPTTL')
        if written.err then
            redis.call('SET', key, last, 'KEEPTTL')
            error(written)
        end
        now, now_text = before + 1, text
    end
    if not shared and (not before or before - before % TOKEN_HOUR_US ~= now - now % TOKEN_HOUR_US) then
        local ends
        if before then
            ends = redis.pcall('EXPIRE', key, TOKEN_LASTS_S, 'GT')
        else
            ends = redis.pcall('EXPIRE', key, TOKEN_LASTS_S)
        end
        if type(ends) == 'table' then
            if not last then
                redis.call('DEL', key)
            end
            error(ends)
        end
    end
    return now_text
end

local function last_token(key)
    return tonumber(redis.call('GET', key) or '') or 0
end

-- The token of a hold that is there; another one if the server lost that.
local function known_token(key, now, now_text, shared)
    local last = last_token(key)
    return last > 0 and last or next_token(key, now, now_text, shared)
end
